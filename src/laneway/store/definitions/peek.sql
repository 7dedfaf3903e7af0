-- One read for a whole worker process: moves due delayed jobs and sleepers to ready, delivers events to jobs that began to
-- wait at the same time, does work that ended jobs have left, and returns the control version, which of
-- the given types have due jobs, which jobs were moved, and when the next one is due.
-- p_ranged … p_hi are index ranges of more types, as in laneway.claim: above the floors, to skip dead rows.
create or replace function laneway.peek(
    p_types text[], p_now timestamptz default null, p_ranged text[] default null, p_fresh boolean[] default null,
    p_lo integer[] default null, p_floor bigint[] default null, p_hi integer[] default null,
    out version bigint, out paused boolean, out due text[], out promoted text[], out next_due_s double precision)
language plpgsql volatile
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_due_s double precision;
begin
    with late as materialized (
        select d.ctid as tid from laneway.delayed d where d.run_at <= v_now
         order by d.run_at limit 1000 for update skip locked
    ), gone as (
        delete from laneway.delayed d where d.ctid = any (array(select tid from late))
        returning d.seq, d.job_type, d.rank, d.attempt, d.retries, d.sealed, d.run_at
    ), back as (
        insert into laneway.ready (seq, job_type, fresh, rank, attempt, retries, sealed, ready_at)
        select g.seq, g.job_type, false, g.rank, g.attempt, g.retries, g.sealed, g.run_at from gone g
    )
    select array_agg(distinct g.job_type) into promoted from gone g;
    if (select true from laneway.waiting w where w.wake_at <= v_now limit 1) then
        promoted := promoted || laneway.wake_sleepers();
    end if;
    if (select true from laneway.event_checks limit 1) then
        promoted := promoted || laneway.check_events();
    end if;
    if (select true from laneway.arrivals limit 1) then
        select promoted || a.job_types, case when a.more then 0 when a.is_busy then 0.05 end
          into promoted, v_due_s from laneway.advance(500) a;
    end if;
    select c.version, c.paused into version, paused from laneway.control c;
    -- Not `not exists`, which may become a join that reads everything if the statistics are wrong.
    due := array(select t from unnest(p_types) t
                  where (select true from laneway.ready w where w.job_type = t limit 1));
    if p_ranged is not null then
        due := due || array(
            select distinct g.job_type from unnest(p_ranged, p_fresh, p_lo, p_floor, p_hi) as g (job_type, fresh, lo, floor, hi)
             where (select true from laneway.ready w
                     where w.job_type = g.job_type and w.fresh = g.fresh
                       and (w.rank, w.seq) > (g.lo, g.floor) and w.rank <= g.hi limit 1));
    end if;
    next_due_s := least(v_due_s, extract(epoch from least(
        (select d.run_at from laneway.delayed d where d.run_at > v_now order by d.run_at limit 1),
        (select w.wake_at from laneway.waiting w where w.wake_at > v_now order by w.wake_at limit 1)) - v_now));
    if cardinality(promoted) > 0 and (exists (select from laneway.delayed d where d.run_at <= v_now)
                                      or exists (select from laneway.waiting w where w.wake_at <= v_now)) then
        next_due_s := 0;
    end if;
end $$;

-- Used slots, depth and oldest wait per lane and job type. Depth stops counting at the bound, earlier if jobs of
-- many types wait; `is_capped`: there are more.
create or replace function laneway.measure(p_bound integer)
returns table (lane text, job_type text, running integer, depth integer, is_capped boolean, oldest_s double precision)
language sql stable
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
    with recursive found as (
        (select w.job_type from laneway.ready w order by w.job_type limit 1)
        union all
        select (select w.job_type from laneway.ready w where w.job_type > t.job_type
                 order by w.job_type limit 1)
          from found t where t.job_type is not null
    ), types as materialized (
        select f.job_type, laneway.lane_of(f.job_type) as lane,
               case when count(*) over () <= 5 then p_bound
                    else greatest(p_bound / 10, 5 * p_bound / count(*) over ()) end as bound
          from found f where f.job_type is not null
    )
    select l.name, ltrim(t.job_type, E'\x01'), u.running, least(n.counted, t.bound)::integer, n.counted > t.bound, n.oldest_s
      from laneway.worker_lanes l
      left join lateral (select coalesce(sum(s.running), 0)::integer as running
                           from laneway.slots_held s where s.lane = l.name) u on true
      left join types t on t.lane = l.name
      left join lateral (
        select (select count(*) from (select from laneway.ready w where w.job_type = t.job_type
                                       limit t.bound + 1) b) as counted,
               (select extract(epoch from clock_timestamp() - min(b.ready_at))::double precision
                  from (select w.ready_at from laneway.ready w where w.job_type = t.job_type
                         order by w.fresh, w.rank, w.seq limit 1000) b) as oldest_s) n on t.job_type is not null
     order by l.name, t.job_type
$$;
