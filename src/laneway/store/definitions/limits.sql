-- The free capacity of each named limit for one worker. Null room: unbounded. wait_s: until an exhausted rate
-- has capacity again. Names without a limit have no row.
-- Stable, so in the snapshot of the calling statement: exact in a statement after the one that locked the
-- limits' rows.
create or replace function laneway.limit_capacity(p_names text[], p_worker uuid, p_now timestamptz)
returns table (limit_name text, room integer, wait_s double precision)
language sql stable as $$
    select l.name,
           -- Null without such a bound; least ignores nulls.
           case when l.max_concurrent < u.running or l.rate_count < s.started then 0
                else least(l.max_concurrent - u.running, l.rate_count - s.started) end::integer,
           case when l.rate_count <= s.started then
               greatest(s.oldest - laneway.horizon_of(p_now, l.rate_period_s), 1000)::double precision / 1000000 end
      from laneway.limits l
     cross join lateral (
        select coalesce(sum(x.running), 0) as running from laneway.limits_held x
         where x.limit_name = l.name
           and case l.scope when 'cluster' then true when 'process' then x.worker_id = p_worker
                            else x.host = laneway.host_of(p_worker) end) u
     cross join lateral (
        select coalesce(sum(x.started), 0) as started, min(x.slice) as oldest from laneway.limit_starts x
         where l.rate_count is not null and x.limit_name = l.name
           and x.site = laneway.site_of(l.scope, p_worker)
           and x.slice > laneway.horizon_of(p_now, l.rate_period_s)) s
     where l.name = any (p_names)
$$;

-- Locks the rows of limits in order, before anything is counted; refuses an unknown limit.
create or replace function laneway.lock_limits(p_names text[]) returns void language plpgsql volatile as $$
declare
    v_name text;
begin
    perform from laneway.limits l where l.name = any (p_names) order by l.name for no key update;
    select n into v_name from unnest(p_names) n
     where not exists (select from laneway.limits l where l.name = n) order by n limit 1;
    if found then
        raise exception using errcode = 'LW001', message = format(
            'limit: %1$s does not exist; create it with `laneway limits set %1$s --max-concurrent N`', v_name);
    end if;
end $$;

-- Limits with less capacity than a call needs, and those of them whose capacity is left to earlier waiters; null:
-- none. wait_s: until a rate has capacity again. p_in_turn false: the call ignores turns.
create or replace function laneway.limit_shortage(
    p_names text[], p_needs integer[], p_lane text, p_worker uuid, p_rank integer, p_in_turn boolean,
    p_now timestamptz, out short text[], out yielded text[], out wait_s double precision)
language sql stable as $$
    select array_agg(x.name) filter (where x.room < x.need or x.turn < x.need),
           array_agg(x.name) filter (where x.room >= x.need and x.turn < x.need),
           max(x.wait_s) filter (where x.room < x.need)
      from (select g.name, g.need, r.room, r.wait_s,
                   case when r.room >= g.need and p_in_turn then laneway.turn_capacity(
                       g.name, r.room, p_lane, p_worker, 'call', p_rank, p_now) end as turn
              from unnest(p_names, p_needs) as g (name, need)
              join laneway.limit_capacity(p_names, p_worker, p_now) r on r.limit_name = g.name) x
$$;

create or replace function laneway.host_of(p_worker uuid) returns text language sql stable as $$
    select coalesce((select w.host from laneway.workers w where w.id = p_worker),
                    (select h.host from laneway.limit_holds h where h.holder = p_worker limit 1), '')
$$;

create or replace function laneway.site_of(p_scope text, p_worker uuid) returns text language sql stable as $$
    select case p_scope when 'cluster' then '' when 'process' then p_worker::text else laneway.host_of(p_worker) end
$$;

-- Starts of a rate are counted in slices of a 32nd of its period, named by their first microsecond, so that they
-- stay valid when the period changes.
create or replace function laneway.slice_width(p_period_s double precision) returns bigint
language sql immutable as $$
    select ceil(p_period_s * 1000000 / 32)::bigint
$$;

create or replace function laneway.slice_of(p_now timestamptz, p_period_s double precision) returns bigint
language sql immutable as $$
    select n.us - mod(n.us, laneway.slice_width(p_period_s))
      from (select (extract(epoch from p_now) * 1000000)::bigint as us) n
$$;

-- Slices that begin after this may have a start within the last period. Each counts until all of it is past, so
-- that no period has more than rate_count starts.
create or replace function laneway.horizon_of(p_now timestamptz, p_period_s double precision) returns bigint
language sql immutable as $$
    select (extract(epoch from p_now) * 1000000)::bigint - ceil(p_period_s * 1000000)::bigint
           - laneway.slice_width(p_period_s)
$$;

-- Counts starts under limits whose rows the caller has locked. In order, like every writer of usage.
create or replace function laneway.take_limits(p_worker uuid, p_names text[], p_counts integer[], p_now timestamptz)
returns void language plpgsql volatile as $$
declare
    r record;
    v_is_new boolean;
    v_from bigint;
begin
    for r in select g.name, g.n from unnest(p_names, p_counts) as g (name, n) order by g.name collate "C" loop
        perform laneway.count_limits(r.name, p_worker, r.n);
    end loop;
    for r in
        select l.name, laneway.site_of(l.scope, p_worker) as site, l.rate_period_s as period_s, g.n
          from unnest(p_names, p_counts) as g (name, n)
          join laneway.limits l on l.name = g.name and l.rate_count is not null
         order by l.name
    loop
        insert into laneway.limit_starts as s (limit_name, site, slice, started)
        values (r.name, r.site, laneway.slice_of(p_now, r.period_s), r.n)
        on conflict (limit_name, site, slice) do update set started = s.started + excluded.started
        returning s.xmax = 0 into v_is_new;
        -- Keep twice the period: a longer period may be set, and needs earlier starts. Deletes very old slices only
        -- now and then: under a held snapshot that reads all dead rows.
        if v_is_new then
            v_from := case when random() < 0.01 then 0 else laneway.horizon_of(p_now, 10 * r.period_s) end;
            delete from laneway.limit_starts s
             where s.limit_name = r.name and s.site = r.site and s.slice < laneway.horizon_of(p_now, 2 * r.period_s)
               and s.slice >= v_from;
        end if;
    end loop;
end $$;

-- Releases as many; the current settings of the limits do not matter.
create or replace function laneway.free_limits(p_worker uuid, p_names text[], p_counts integer[])
returns void language plpgsql volatile as $$
declare
    r record;
begin
    for r in select g.name, sum(g.n)::integer as n from unnest(p_names, p_counts) as g (name, n)
              group by g.name order by g.name collate "C" loop
        perform laneway.count_limits(r.name, p_worker, -r.n);
    end loop;
    if exists (select from laneway.waiters_of(p_names)) then
        perform laneway.wake_next_waiters(p_names, p_worker);
    end if;
end $$;

-- The job types that may wait for one of these limits, of which as many were just released. A limit far below its
-- maximum made no job wait; half of it counts as far, because of concurrent claims.
create or replace function laneway.freed_types(p_names text[], p_counts integer[]) returns setof text
language sql stable as $$
    select t.name from laneway.job_types t
     where t.limits && array(
        select l.name::text from laneway.limits l
          join (select x.name, sum(x.n) as n from unnest(p_names, p_counts) as x (name, n) group by x.name) g
            on g.name = l.name
         where l.max_concurrent is not null
           and (l.scope <> 'cluster' or l.max_concurrent <= 2 * (g.n + (
                select coalesce(sum(u.running), 0) from laneway.limits_held u where u.limit_name = l.name))))
$$;
