-- Claims up to p_room due jobs of one lane for one worker, in order, and never more than the slots
-- that are free. One row; `state` says why there are no jobs: ok, changed (the control version moved
-- on: read it and call again), paused, disabled, full.
-- p_types … p_hi describe index ranges: a job type, its group, fresh or not, ranks after (lo, floor)
-- up to hi. p_caps is the room of each group (isolation). `more`: there may be more than was looked
-- for. `left_over` counts rows looked at and not taken, so that the caller can tell others.
create or replace function laneway.claim(
    p_worker uuid, p_lane text, p_version bigint, p_room integer,
    p_types text[], p_groups integer[], p_fresh boolean[], p_lo integer[], p_floor bigint[], p_hi integer[],
    p_caps integer[], p_now timestamptz default null,
    out state text, out own xid8, out horizon xid8, out left_over integer, out more boolean, out lease_s integer,
    out seqs bigint[], out ids uuid[], out attempts integer[], out ranks integer[], out job_types text[],
    out payloads text[], out checkpoints text[], out retries integer[], out freshes boolean[])
language plpgsql volatile
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set lock_timeout = '2s'
as $$
declare
    v_lane    record;
    v_room    integer := p_room;
    v_free    integer;
    v_types   integer;
    v_probe   integer;
    v_now     timestamptz;
    v_paused  boolean;
    v_version bigint;
    v_locked  integer;
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        -- Each statement below must see what was committed before it; one old snapshot would overfill lanes.
        raise exception using errcode = 'LW002', message =
            'claims need transaction isolation "read committed"',
            hint = 'alter role … set default_transaction_isolation = ''read committed''';
    end if;
    perform pg_advisory_xact_lock_shared(5577006791947779410);
    select c.paused, c.version into v_paused, v_version from laneway.control c;
    if v_version <> p_version then state := 'changed'; return; end if;
    if v_paused then state := 'paused'; return; end if;
    select l.max_slots, l.enabled, l.lease_seconds into v_lane
      from laneway.worker_lanes l where l.name = p_lane;
    if not found or not v_lane.enabled then state := 'disabled'; return; end if;
    lease_s := v_lane.lease_seconds;
    if v_lane.max_slots is not null then
        -- Refuse without the lock first, so that idle claimers do not queue on a full lane.
        if v_lane.max_slots <= (select coalesce(sum(running), 0) from laneway.slot_usage where lane = p_lane) then
            state := 'full'; return;
        end if;
        perform from laneway.worker_lanes l where l.name = p_lane for no key update;
        -- A new statement, so a snapshot younger than the lock: it counts every claim committed before.
        select v_lane.max_slots - coalesce(sum(running), 0) into v_free
          from laneway.slot_usage where lane = p_lane;
        if v_free <= 0 then state := 'full'; return; end if;
        v_room := least(v_room, v_free);
    end if;
    -- The xid comes before the snapshot of the pick: a row committed later has a seq the floor rule sees.
    own := pg_current_xact_id();
    horizon := pg_snapshot_xmin(pg_current_snapshot());
    v_types := (select count(distinct t) from unnest(p_types) t);
    v_probe := case when v_types <= 2 then v_room
                    else least(v_room, 2 * ((v_room + v_types - 1) / v_types) + 16) end;
    v_now := coalesce(p_now, clock_timestamp());

    with probe as materialized (
        select r.tid, r.seq, r.rank, g.grp, row_number() over (partition by g.n order by r.rank, r.seq) as place
          from unnest(p_types, p_groups, p_fresh, p_lo, p_floor, p_hi)
               with ordinality as g (job_type, grp, fresh, lo, floor, hi, n)
         cross join lateral (
            select w.ctid as tid, w.seq, w.rank from laneway.ready w
             where w.job_type = g.job_type and w.fresh = g.fresh
               and (w.rank, w.seq) > (g.lo, g.floor) and w.rank <= g.hi
             order by w.rank, w.seq
             limit least(v_probe, p_caps[g.grp])
               for update skip locked) r
    ), edge as materialized (
        -- A range that filled its probe may hide rows behind its last one: nothing after the
        -- first such edge is known to be next in order.
        select p.rank, p.seq from probe p
         where v_probe < v_room and p.place = v_probe order by p.rank, p.seq limit 1
    ), picked as materialized (
        select q.tid from (
            select p.*, row_number() over (partition by p.grp order by p.rank, p.seq) as in_group from probe p) q
         where q.in_group <= p_caps[q.grp]
           and not exists (select from edge e where (q.rank, q.seq) > (e.rank, e.seq))
         order by q.rank, q.seq limit v_room
    ), gone as (
        delete from laneway.ready w where w.ctid = any (array(select tid from picked))
        returning w.seq, w.job_type, w.rank, w.attempt, w.retries, w.fresh
    ), claimed as materialized (
        select g.seq, g.job_type, g.rank, g.attempt + 1 as attempt, g.retries, g.fresh, j.id, j.workspace, j.max_retries,
               j.unique_key is not null as keyed, j.payload::text as payload, c.checkpoint::text as checkpoint
          from gone g
         -- offset 0: from the row to its job by index, whatever the statistics say.
         cross join lateral (select b.* from laneway.jobs b where b.seq = g.seq offset 0) j
          left join lateral (select s.checkpoint from laneway.progress s
                              where g.attempt > 0 and s.seq = g.seq offset 0) c on true
         order by g.rank, g.seq
    ), leased as (
        insert into laneway.lease (seq, attempt, worker_id, lane, job_type, workspace, rank, retries, max_retries,
                                   keyed, lease_seconds, claimed_at, lease_until)
        select c.seq, c.attempt, p_worker, p_lane, c.job_type, c.workspace, c.rank, c.retries, c.max_retries,
               c.keyed, v_lane.lease_seconds, v_now, v_now + make_interval(secs => v_lane.lease_seconds)
          from claimed c
    )
    select array_agg(c.seq), array_agg(c.id), array_agg(c.attempt), array_agg(c.rank), array_agg(c.job_type),
           array_agg(c.payload), array_agg(c.checkpoint), array_agg(c.retries), array_agg(c.fresh),
           (select count(*) from probe), exists (select from edge)
      into seqs, ids, attempts, ranks, job_types, payloads, checkpoints, retries, freshes, v_locked, more
      from claimed c;

    state := 'ok';
    left_over := v_locked - coalesce(cardinality(seqs), 0);
    more := more or coalesce(cardinality(seqs), 0) >= v_room;
    if seqs is not null then
        insert into laneway.slot_usage as u (lane, worker_id, running)
        values (p_lane, p_worker, cardinality(seqs))
        on conflict (lane, worker_id) do update set running = u.running + excluded.running;
    end if;
end $$;
