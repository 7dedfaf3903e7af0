-- Limits that a handler holds for one call. Both say how many the attempt is to hold, not how many
-- more or fewer: a call repeated because its answer was lost changes nothing.

-- Lets the attempt named hold each limit as often as wanted, all or none, if it is the one running.
-- Answers granted, full (wait_s: when a rate has room again, or others whose turn it is have come, null if
-- nobody can know), cancel_requested,
-- fenced or busy (ask again). Refuses a limit that p_inside fills alone: what the caller holds of each
-- around this call, and gives back only after it. Locks as a claim does: the limits' rows in order,
-- then their usage; for the lease it never waits.
create or replace function laneway.acquire(
    p_seq bigint, p_attempt integer, p_names text[], p_wants integer[], p_inside integer[] default null,
    p_now timestamptz default null, out answer text, out wait_s double precision)
language plpgsql volatile
-- The worker shares this connection among all its handlers.
set lock_timeout = '2s'
as $$
declare
    v_now   timestamptz;
    v_lease record;
    v_name  text;
    v_most  integer;
    v_names text[];
    v_needs integer[];
    v_short text[];
    v_yielded text[];
begin
    perform from laneway.limits l where l.name = any (p_names) order by l.name for no key update;
    select n into v_name from unnest(p_names) n
     where not exists (select from laneway.limits l where l.name = n) order by n limit 1;
    if found then
        raise exception using errcode = 'LW001', message = format(
            'limit: there is none named %1$s; create it with `laneway limits set %1$s --max-concurrent N`', v_name);
    end if;
    select l.worker_id, l.job_type, l.cancel_requested_at, l.limits, l.lane, l.rank into v_lease from laneway.lease l
     where l.seq = p_seq and l.attempt = p_attempt for no key update skip locked;
    if not found then
        perform from laneway.lease l where l.seq = p_seq and l.attempt = p_attempt;
        answer := case when found then 'busy' else 'fenced' end;
        return;
    elsif v_lease.cancel_requested_at is not null then
        answer := 'cancel_requested';
        return;
    end if;
    select n into v_name from laneway.job_types t, unnest(t.limits) n
     where t.name = v_lease.job_type and n = any (p_names) order by n limit 1;
    if found then
        raise exception using errcode = 'LW001', message = format(
            'limit: %s is held for the whole run already, by the limits of job type %s', v_name, v_lease.job_type);
    end if;
    select i.name, l.max_concurrent into v_name, v_most from unnest(p_names, p_inside) as i (name, n)
      join laneway.limits l on l.name = i.name
     where i.n > 0 and i.n >= l.max_concurrent order by i.name limit 1;
    if found then
        raise exception using errcode = 'LW001', message = format(
            'limit: %s is held by this job already, around this call, and its max_concurrent is %s', v_name, v_most);
    end if;
    select array_agg(g.name), array_agg(g.need) into v_names, v_needs
      from (select w.name, w.want - (select count(*) from unnest(v_lease.limits) h where h = w.name)::integer as need
              from unnest(p_names, p_wants) as w (name, want)) g
     where g.need > 0;
    if v_names is not null then
        v_now := coalesce(p_now, clock_timestamp());
        select array_agg(x.name) filter (where x.room < x.need or x.turn < x.need),
               array_agg(x.name) filter (where x.room >= x.need and x.turn < x.need),
               max(x.wait_s) filter (where x.room < x.need)
          into v_short, v_yielded, wait_s
          from (select g.name, g.need, r.room, r.wait_s,
                       -- Who holds some of the limits around this call waits for nobody who may wait for them.
                       case when r.room >= g.need and 0 = all (coalesce(p_inside, '{}')) then laneway.turn_room(
                           g.name, r.room, v_lease.lane, v_lease.worker_id, 'call', v_lease.rank, v_now) end as turn
                  from unnest(v_names, v_needs) as g (name, need)
                  join laneway.limit_room(v_names, v_lease.worker_id, v_now) r on r.limit_name = g.name) x;
        if v_short is not null then
            perform laneway.keep_turns(v_lease.worker_id, v_lease.lane, 'call', v_names, array_agg(v_lease.rank), null,
                                       array_agg(n = any (v_short)), v_yielded, v_now) from unnest(v_names) n;
            if v_yielded is not null then wait_s := least(wait_s, 0.05); end if;
            answer := 'full';
            return;
        end if;
        perform laneway.take_limits(v_lease.worker_id, v_names, v_needs, v_now);
        perform laneway.keep_turns(v_lease.worker_id, v_lease.lane, 'call', v_names, array_agg(v_lease.rank), v_needs,
                                   array_agg(false), null, v_now) from unnest(v_names) n;
        update laneway.lease l
           set limits = coalesce(l.limits, '{}') || array(
                   select g.name from unnest(v_names, v_needs) as g (name, need), generate_series(1, g.need))
         where l.seq = p_seq;
    end if;
    wait_s := null;
    answer := 'granted';
end $$;

-- Gives back what the attempt named holds of each limit beyond what it keeps. Answers given, fenced
-- (whoever ended the attempt gave them back) or busy (ask again). Never waits for the lease.
create or replace function laneway.release_limits(
    p_seq bigint, p_attempt integer, p_names text[], p_keeps integer[]) returns text
language plpgsql volatile as $$
declare
    v_lease record;
    v_names text[];
    v_counts integer[];
begin
    select l.worker_id, l.limits into v_lease from laneway.lease l
     where l.seq = p_seq and l.attempt = p_attempt for no key update skip locked;
    if not found then
        perform from laneway.lease l where l.seq = p_seq and l.attempt = p_attempt;
        return case when found then 'busy' else 'fenced' end;
    end if;
    select array_agg(g.name), array_agg(g.surplus) into v_names, v_counts
      from (select k.name, (select count(*) from unnest(v_lease.limits) h where h = k.name)::integer - k.keep as surplus
              from unnest(p_names, p_keeps) as k (name, keep)) g
     where g.surplus > 0;
    if v_names is not null then
        update laneway.lease l
           set limits = (select array_agg(h.name)
                           from (select n as name, row_number() over (partition by n) as k
                                   from unnest(l.limits) n) h
                           left join unnest(p_names, p_keeps) as g (name, keep) on g.name = h.name
                          where g.name is null or h.k <= g.keep)
         where l.seq = p_seq;
        perform laneway.give_limits(v_lease.worker_id, v_names, v_counts);
    end if;
    return 'given';
end $$;
