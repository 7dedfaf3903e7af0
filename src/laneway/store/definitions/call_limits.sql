-- Limits that a handler holds for one call. Both functions take the total that the attempt should hold, not a
-- difference: a call repeated because its response was lost changes nothing.

-- Acquires each limit up to the wanted total for an attempt, all or none, if it is the running one. Returns
-- granted, full (wait_s: until a rate has capacity again or earlier waiters have had their turn; null if
-- unknown), cancel_requested, fenced or busy (try again). Refuses a limit that p_inside alone fills: the
-- holds of the caller around this call, which it releases only afterwards. Locks like a claim: the limits'
-- rows in order, then their usage; never waits for the lease.
create or replace function laneway.acquire(
    p_seq bigint, p_attempt integer, p_names text[], p_wants integer[], p_inside integer[] default null,
    p_now timestamptz default null, out answer text, out wait_s double precision)
language plpgsql volatile
-- All handlers of the worker share this connection.
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
    perform laneway.lock_limits(p_names);
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
        -- A call inside other holds never waits for a turn: the next in turn may wait for those holds.
        select x.short, x.yielded, x.wait_s into v_short, v_yielded, wait_s
          from laneway.limit_shortage(v_names, v_needs, v_lease.lane, v_lease.worker_id, v_lease.rank,
                                      0 = all (coalesce(p_inside, '{}')), v_now) x;
        if v_short is not null then
            perform laneway.update_turns(v_lease.worker_id, v_lease.lane, 'call', v_names, array_agg(v_lease.rank),
                                         null, array_agg(n = any (v_short)), v_yielded, v_now) from unnest(v_names) n;
            if v_yielded is not null then wait_s := least(wait_s, 0.05); end if;
            answer := 'full';
            return;
        end if;
        perform laneway.take_limits(v_lease.worker_id, v_names, v_needs, v_now);
        perform laneway.update_turns(v_lease.worker_id, v_lease.lane, 'call', v_names, array_agg(v_lease.rank), v_needs,
                                     array_agg(false), null, v_now) from unnest(v_names) n;
        update laneway.lease l
           set limits = coalesce(l.limits, '{}') || array(
                   select g.name from unnest(v_names, v_needs) as g (name, need), generate_series(1, g.need))
         where l.seq = p_seq;
    end if;
    wait_s := null;
    answer := 'granted';
end $$;

-- Releases what an attempt holds of each limit beyond what it keeps. Returns given, fenced (the end of the
-- attempt released them) or busy (try again). Never waits for the lease.
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
        perform laneway.free_limits(v_lease.worker_id, v_names, v_counts);
    end if;
    -- Overlapping calls do not tell which of them ends: release the oldest hold.
    delete from laneway.call_holds h
     using (select x.id, x.limit_name, row_number() over (partition by x.limit_name order by x.until desc) as k
              from laneway.call_holds x where x.seq = p_seq and x.attempt = p_attempt) o
      join unnest(p_names, p_keeps) as g (name, keep) on g.name = o.limit_name
     where h.id = o.id and o.k > g.keep;
    return 'given';
end $$;

-- Like acquire, for a worker that is not trusted to release limits: each is released after p_hold_s.
create or replace function laneway.acquire_for_remote(
    p_seq bigint, p_attempt integer, p_names text[], p_wants integer[], p_inside integer[], p_hold_s double precision,
    out answer text, out wait_s double precision)
language plpgsql volatile as $$
begin
    select a.answer, a.wait_s into answer, wait_s from laneway.acquire(p_seq, p_attempt, p_names, p_wants, p_inside) a;
    if answer <> 'granted' then return; end if;
    -- After the lease is locked: other calls of the attempt run before or after this one.
    insert into laneway.call_holds (seq, attempt, limit_name, until)
    select p_seq, p_attempt, w.name, clock_timestamp() + make_interval(secs => p_hold_s)
      from unnest(p_names, p_wants) as w (name, want)
     cross join lateral generate_series(1, w.want - (
        select count(*)::integer from laneway.call_holds h
         where h.seq = p_seq and h.attempt = p_attempt and h.limit_name = w.name));
end $$;

-- Releases the expired limits of one remote attempt; further attempts at the next call, because each is a transaction.
-- Returns the job and the limits, null if there was none, and the seconds until the next expiry.
create or replace function laneway.end_call_holds(out job_id uuid, out names text[], out next_s double precision)
language plpgsql volatile as $$
declare
    r record;
    v_limits text[];
    v_lapsed integer[];
    v_keeps integer[];
begin
    for r in select h.seq, h.attempt from laneway.call_holds h where h.until <= clock_timestamp()
              group by h.seq, h.attempt order by min(h.until) limit 100 loop
        select l.limits into v_limits from laneway.lease l
         where l.seq = r.seq and l.attempt = r.attempt for no key update skip locked;
        if not found then
            perform from laneway.lease l where l.seq = r.seq and l.attempt = r.attempt;
            -- Another transaction has the lease locked: try at the next call.
            continue when found;
            -- The end of the attempt released its limits.
            delete from laneway.call_holds h where h.seq = r.seq and h.attempt = r.attempt;
            continue;
        end if;
        -- Servers of the previous version grant limits without a row: those stay held.
        select array_agg(x.name), array_agg(x.lapsed), array_agg(greatest(x.live, x.held - x.lapsed))
          into names, v_lapsed, v_keeps
          from (select h.limit_name as name, count(*) filter (where h.until <= clock_timestamp())::integer as lapsed,
                       count(*) filter (where h.until > clock_timestamp())::integer as live,
                       (select count(*) from unnest(v_limits) n where n = h.limit_name)::integer as held
                  from laneway.call_holds h where h.seq = r.seq and h.attempt = r.attempt
                 group by h.limit_name) x
         where x.lapsed > 0;
        continue when names is null;
        perform laneway.release_limits(r.seq, r.attempt, names, v_keeps);
        delete from laneway.call_holds h
         where h.seq = r.seq and h.attempt = r.attempt and h.until <= clock_timestamp();
        perform laneway.wake(array(select laneway.freed_types(names, v_lapsed)));
        select j.id into job_id from laneway.jobs j where j.seq = r.seq;
        exit;
    end loop;
    select greatest(extract(epoch from h.until - clock_timestamp()), 0) into next_s
      from laneway.call_holds h order by h.until limit 1;
end $$;
