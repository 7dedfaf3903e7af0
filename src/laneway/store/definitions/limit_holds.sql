-- Limits held outside of jobs: a process holds them for a lease and renews it while it needs them. All with their
-- owner's rights: a role that may hold a limit needs no write access to the counters.

-- Acquires one of each limit for a process, all or none. Returns granted or full (wait_s: when to try again, null if
-- unknown). A call repeated because its response was lost changes nothing. Locks like a claim.
create or replace function laneway.hold_limits(
    p_hold uuid, p_holder uuid, p_host text, p_names text[], p_rank integer, p_lease_s double precision,
    out answer text, out wait_s double precision)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
set lock_timeout = '2s'
as $$
declare
    v_now     timestamptz;
    v_held    text[];
    v_short   text[];
    v_yielded text[];
begin
    perform laneway.lock_limits(p_names);
    v_now := clock_timestamp();
    insert into laneway.limit_holds as h (id, holder, host, lease_until)
    values (p_hold, p_holder, p_host, v_now + make_interval(secs => p_lease_s))
    on conflict (id) do update set lease_until = excluded.lease_until
    returning h.names into v_held;
    if v_held <> '{}' then answer := 'granted'; return; end if;
    perform laneway.sweep_holds(100, p_names);
    select x.short, x.yielded, x.wait_s into v_short, v_yielded, wait_s
      from laneway.limit_shortage(p_names, array_fill(1, array[cardinality(p_names)]), '(outside)', p_holder, p_rank,
                                  true, v_now) x;
    if v_short is null then
        update laneway.limit_holds h set names = p_names where h.id = p_hold;
        perform laneway.take_limits(p_holder, p_names, array_agg(1), v_now) from unnest(p_names);
    end if;
    perform laneway.update_turns(p_holder, '(outside)', 'call', p_names, array_agg(p_rank),
                                 case when v_short is null then array_agg(1) end,
                                 array_agg(coalesce(n = any (v_short), false)), v_yielded, v_now)
       from unnest(p_names) n;
    if v_yielded is not null then wait_s := least(wait_s, 0.05); end if;
    answer := case when v_short is null then 'granted' else 'full' end;
end $$;

-- The maximum of concurrent holders of each named limit, and its holders: job types and hosts, at most 20 of each and
-- of 100 limits. No job ids: a role that may hold a limit need not see every workspace.
create or replace function laneway.limit_holders(p_names text[], p_most integer)
returns table (name text, max_concurrent integer, holders text[])
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
    select l.name, l.max_concurrent, array(
        select h.who from (
            (select 0 as kind, e.job_type as thing,
                    case count(*) when 1 then format('a job of type %s', e.job_type)
                         else format('%s jobs of type %s', count(*), e.job_type) end as who
               from laneway.lease e where l.name = any (e.limits) group by e.job_type
              order by e.job_type limit m.most)
            union all
            (select 1, o.host, case count(*) when 1 then format('a process on %s', o.host)
                                    else format('%s processes on %s', count(*), o.host) end
               from laneway.limit_holds o
              where l.name = any (o.names) and o.lease_until > clock_timestamp() group by o.host
              order by o.host limit m.most)) h
         order by h.kind, h.thing limit m.most)
      from laneway.limits l, (values (least(greatest(p_most, 0), 20))) m (most)
     where l.name = any (p_names[:100]) order by l.name
$$;

-- Renews the holds of a process. Returns the missing ones: their lease had lapsed.
create or replace function laneway.renew_holds(p_holds uuid[], p_lease_s double precision) returns setof uuid
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
    with renewed as (
        update laneway.limit_holds h set lease_until = clock_timestamp() + make_interval(secs => p_lease_s)
         where h.id = any (p_holds) returning h.id)
    select g from unnest(p_holds) g where g not in (select r.id from renewed r)
$$;

-- Releases these holds, or ends their wait; p_lapsed: only those that are not renewed.
create or replace function laneway.drop_holds(p_holds uuid[], p_lapsed boolean default false) returns integer
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    r record;
    v_ids uuid[];
    v_n integer := 0;
begin
    if p_lapsed then
        -- Checked again with the lock: its process may have renewed it.
        v_ids := array(select h.id from laneway.limit_holds h
                        where h.id = any (p_holds) and h.lease_until < clock_timestamp()
                        order by h.id for update skip locked);
    else
        v_ids := array(select h.id from laneway.limit_holds h where h.id = any (p_holds) order by h.id for update);
    end if;
    for r in
        with gone as (
            delete from laneway.limit_holds h where h.id = any (v_ids) returning h.holder, h.names)
        select g.holder, array_agg(n.name) filter (where n.name is not null) as names,
               count(*) filter (where n.name is null) as waiting
          from gone g left join lateral unnest(g.names) n (name) on true group by g.holder order by g.holder
    loop
        if r.names is not null then
            perform laneway.free_limits(r.holder, r.names, array_agg(1)) from unnest(r.names);
            -- The sweep of workers does not know this process. Its counters are locked now, so none changes meanwhile.
            delete from laneway.limit_counts c using laneway.limits_held u
             where u.worker_id = r.holder and u.limit_name = any (r.names) and u.running = 0
               and c.limit_name = u.limit_name and c.worker_id = u.worker_id and c.place = u.place;
            v_n := v_n + 1;
        end if;
        if r.waiting > 0 then
            perform laneway.leave_turns(r.holder, '(outside)', 'call', null);
            -- Such a process may never come back.
            perform laneway.delete_past_turns(w.limit_name, 'infinity', r.holder)
               from laneway.limit_waiters w where w.worker_id = r.holder;
        end if;
    end loop;
    return v_n;
end $$;

-- Releases lapsed holds: of the named limits, or of all. Returns how many.
create or replace function laneway.sweep_holds(p_limit integer default 200, p_names text[] default null)
returns integer language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_lapsed uuid[] := array(
        select h.id from laneway.limit_holds h
         where h.lease_until < clock_timestamp() and (p_names is null or h.names && p_names or h.names = '{}')
         order by h.lease_until limit p_limit);
begin
    if v_lapsed = '{}' then return 0; end if;
    perform laneway.wake(array(
        select laneway.freed_types(array_agg(n), array_agg(1))
          from laneway.limit_holds h, unnest(h.names) n where h.id = any (v_lapsed)));
    return laneway.drop_holds(v_lapsed, true);
end $$;
