-- Claims up to p_room due jobs of one lane for one worker, in order, and never more than the free slots.
-- Returns one row; `state`: ok, or the reason for not claiming: changed (another control version: read it and
-- call again), paused, disabled, full, limited.
-- p_types … p_hi describe index ranges: a job type, its group, fresh or not, ranks after (lo, floor) up to hi.
-- p_caps: the capacity of each group (isolation). p_busy: how many of the types recently had jobs, to read few
-- rows beyond those taken; a wrong guess only costs time. `more`: there may be more due jobs. `left_over`: rows
-- locked but not taken, so that the caller can wake other workers.
-- `limited`: a limit has no capacity for a type, or less than its due jobs; wait_s: until a rate has capacity, or
-- until the next in turn have started (turns.sql).
-- `parked`: jobs put aside because another job holds their key. `forged`: jobs that changed since their approval.
-- `retry_limits`: max_retries of each job. `tag_lists`: a JSON array for each; null, as `submitters`, if no job has any.
-- p_plain: claims only jobs that hold nothing but their slot, for a worker that may not start them at once: nothing in
-- a bounded lane or while jobs with limits are due, and no jobs with a key or without a required approval. `refused`:
-- there may be such jobs, for a claim without it.
-- Locks in this order, as everywhere: lane, limits by name, keys by name, usage, turns by limit.
create or replace function laneway.claim(
    p_worker uuid, p_lane text, p_version bigint, p_room integer,
    p_types text[], p_groups integer[], p_fresh boolean[], p_lo integer[], p_floor bigint[], p_hi integer[],
    p_caps integer[], p_now timestamptz default null, p_busy integer default null, p_plain boolean default false,
    out state text, out own xid8, out horizon xid8, out left_over integer, out more boolean, out lease_s integer,
    out limited boolean, out wait_s double precision, out parked integer,
    out seqs bigint[], out ids uuid[], out attempts integer[], out ranks integer[], out job_types text[],
    out payloads text[], out checkpoints text[], out retries integer[], out freshes boolean[], out forged boolean[],
    out retry_limits integer[], out tag_lists text[], out submitters text[], out refused boolean)
language plpgsql volatile
set jit = off
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
    v_is_full boolean := false;
    v_types   integer;
    v_probe   integer;
    v_now     timestamptz;
    v_locked  integer;
    v_tids    tid[];
    v_analyze boolean;
    v_place   bigint;
    -- Pairs of a type and a limit that it needs, and the capacity of each pair.
    v_needy   text[];
    v_needed  text[];
    v_rooms   integer[];
    -- The first rank of each such type; limits whose capacity is left to others in turn.
    v_heads   integer[];
    v_yielded text[];
    v_shut    text[];
    v_absent  text[];
    v_caps    integer[];
    v_taken   text[];
    v_counts  integer[];
    -- Types that require an analysis or an approval; jobs of them without one, sent back instead of claimed.
    v_guarded text[];
    v_unapproved bigint[];
    -- Jobs with a key, or without a decision that may be required: leased in a second step.
    v_second  laneway.key_waiters[];
    -- Jobs that did not get their key; jobs approved by a decision, and those changed since.
    v_lost    bigint[];
    v_sealed  bigint[];
    v_changed  bigint[];
    v_returned bigint[];
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        -- Each statement below must see all earlier commits; one snapshot for all would overfill lanes.
        raise exception using errcode = 'LW002', message =
            'claims need transaction isolation "read committed"',
            hint = 'alter role … set default_transaction_isolation = ''read committed''';
    end if;
    perform pg_advisory_xact_lock_shared(5577006791947779410);
    select c.paused, c.version, l.max_slots, coalesce(l.enabled, false) as enabled, l.lease_seconds into v_lane
      from laneway.control c left join laneway.worker_lanes l on l.name = p_lane;
    if v_lane.version <> p_version then state := 'changed'; return; end if;
    if v_lane.paused then state := 'paused'; return; end if;
    if not v_lane.enabled then state := 'disabled'; return; end if;
    lease_s := v_lane.lease_seconds;
    limited := false;
    parked := 0;
    -- Skip limited types without due jobs: only a claim that needs a limit locks its row.
    select array_agg(t.name) filter (where w.head is not null), array_agg(n.name) filter (where w.head is not null),
           array_agg(w.head) filter (where w.head is not null), array_agg(t.name) filter (where w.head is null)
      into v_needy, v_needed, v_heads, v_absent
      from laneway.job_types t
     cross join lateral (
        select min(r.rank) as head
          from unnest(p_types, p_fresh, p_lo, p_floor, p_hi) as g (job_type, fresh, lo, floor, hi)
         cross join lateral (
            select w.rank from laneway.ready w
             where w.job_type = g.job_type and w.fresh = g.fresh
               and (w.rank, w.seq) > (g.lo, g.floor) and w.rank <= g.hi
             order by w.rank, w.seq limit 1) r
         where g.job_type = t.name) w
     cross join lateral (select distinct u as name from unnest(t.limits) u) n
     where t.name = any (p_types) and t.limits <> '{}';
    if p_plain and (v_lane.max_slots is not null or v_needy is not null) then
        state := 'ok';
        refused := true;
        return;
    end if;
    if v_absent is not null then
        v_caps := array(select case when u.t = any (v_absent) then 0 end
                          from unnest(p_types) with ordinality as u (t, n) order by u.n);
    end if;
    if v_needy is not null then
        -- Skip types without capacity under one of their limits: their ranges are not read.
        select array_agg(p.job_type), min(r.wait_s) into v_shut, wait_s
          from unnest(v_needy, v_needed) as p (job_type, limit_name)
          join laneway.limit_capacity(v_needed, p_worker, coalesce(p_now, clock_timestamp())) r
            on r.limit_name = p.limit_name
         where r.room = 0;
        limited := v_shut is not null;
    end if;
    -- Refuse without the lock first, so that idle claimers do not queue on a full lane.
    if v_lane.max_slots is not null
       and v_lane.max_slots <= (select coalesce(sum(running), 0) from laneway.slots_held where lane = p_lane) then
        -- The slot and the limit may become free together: keep the lane in line for both.
        v_is_full := true;
    end if;
    if v_is_full or p_types <@ v_shut then
        if v_needy is not null then
            perform laneway.update_turns(p_worker, p_lane, 'claim', array_agg(p.limit_name), array_agg(p.head), null,
                                         array_agg(v_is_full or p.job_type = any (v_shut)), null,
                                         coalesce(p_now, clock_timestamp()))
               from unnest(v_needy, v_needed, v_heads) as p (job_type, limit_name, head);
        end if;
        if v_absent is not null then perform laneway.leave_turns(p_worker, p_lane, 'claim', v_needed); end if;
        state := case when p_types <@ v_shut then 'limited' else 'full' end;
        return;
    end if;
    if v_lane.max_slots is not null then
        perform from laneway.worker_lanes l where l.name = p_lane for no key update;
        -- A new statement has a snapshot newer than the lock: it counts every claim committed before.
        select v_lane.max_slots - coalesce(sum(running), 0) into v_free
          from laneway.slots_held where lane = p_lane;
        if v_free <= 0 then state := 'full'; return; end if;
        v_room := least(v_room, v_free);
    end if;
    if v_needy is not null then
        perform from laneway.limits l
          where l.name = any (array(select p.limit_name from unnest(v_needy, v_needed) as p (job_type, limit_name)
                                     where p.job_type <> all (coalesce(v_shut, '{}'))))
          order by l.name for no key update;
        -- In the next statement after the locks: exact. Skipped limits are not locked and stay skipped.
        select array_agg(case when p.job_type = any (v_shut) then 0 else r.room end order by p.n),
               limited or coalesce(bool_or(r.room = 0), false), least(claim.wait_s, min(r.wait_s) filter (where r.room = 0))
          into v_rooms, limited, wait_s
          from unnest(v_needy, v_needed) with ordinality as p (job_type, limit_name, n)
          left join laneway.limit_capacity(v_needed, p_worker, coalesce(p_now, clock_timestamp())) r
            on r.limit_name = p.limit_name;
        if exists (select from laneway.waiters_of(v_needed)) then
            select array_agg(case when x.turn < x.room then x.turn else x.room end order by x.n),
                   array_agg(x.limit_name) filter (where x.turn < x.room)
              into v_rooms, v_yielded
              from (select p.n, p.limit_name, p.room, case when p.room > 0 then laneway.turn_capacity(
                               p.limit_name, p.room, p_lane, p_worker, 'claim', p.first, coalesce(p_now, clock_timestamp()))
                           end as turn
                      from (select u.*, min(u.head) over (partition by u.limit_name) as first
                              from unnest(v_needed, v_heads, v_rooms) with ordinality as u (limit_name, head, room, n)) p) x;
            if v_yielded is not null then
                limited := true;
                wait_s := least(wait_s, 0.05);
            end if;
        end if;
        v_caps := array(select coalesce(c, (select min(r.room) from unnest(v_needy, v_rooms) as r (job_type, room)
                                             where r.job_type = u.t))
                          from unnest(p_types, v_caps) with ordinality as u (t, c, n) order by u.n);
        if 0 = all (v_caps) then
            perform laneway.update_turns(p_worker, p_lane, 'claim', array_agg(p.limit_name), array_agg(p.head), null,
                                         array_agg(p.room = 0), v_yielded, coalesce(p_now, clock_timestamp()))
               from unnest(v_needed, v_heads, v_rooms) as p (limit_name, head, room);
            if v_absent is not null then perform laneway.leave_turns(p_worker, p_lane, 'claim', v_needed); end if;
            state := 'limited';
            return;
        end if;
    end if;
    if p_busy is not null and v_room >= 500 and v_lane.max_slots is null and v_needy is null then
        -- Many large claims at once spend most of their time on rows locked by others: allow two at a time.
        v_place := hashtextextended(p_lane, 5577006791947779410 + (uuid_hash(p_worker) & 1));
        if not pg_try_advisory_xact_lock(v_place)
           and not pg_try_advisory_xact_lock(hashtextextended(p_lane, 5577006791947779411 - (uuid_hash(p_worker) & 1))) then
            perform pg_advisory_xact_lock(v_place);
        end if;
    end if;
    v_now := coalesce(p_now, clock_timestamp());
    -- After the locks: a policy published while this claim waited applies.
    select array_agg(t.name) into v_guarded from laneway.job_types t
     where t.name = any (p_types) and (t.approval <> 'never' or t.has_analysis);
    -- Higher than the id of any transaction that hid a row from an earlier claim: see floors.py.
    own := pg_current_xact_id();
    horizon := pg_snapshot_xmin(pg_current_snapshot());
    v_types := coalesce(p_busy, (cardinality(p_types) + 1) / 2);
    -- In the collation of the columns, whatever the database's default is.
    v_analyze := E'\x02' collate "C" > any (p_types);
    v_probe := case when v_types <= 2 then v_room
                    else least(v_room, 2 * ((v_room + v_types - 1) / v_types) + 16) end;

    -- Lock first, then delete exactly the locked rows in a second statement, which sees their newest versions.
    if v_probe >= v_room and v_needy is null and p_groups[1] = all (p_groups) then
        with probe as materialized (
            select r.tid, r.seq, r.rank
              from unnest(p_types, p_fresh, p_lo, p_floor, p_hi) with ordinality as g (job_type, fresh, lo, floor, hi, n)
             cross join lateral (
                select w.ctid as tid, w.seq, w.rank from laneway.ready w
                 where w.job_type = g.job_type and w.fresh = g.fresh
                   and (w.rank, w.seq) > (g.lo, g.floor) and w.rank <= g.hi
                 order by w.rank, w.seq
                 limit least(v_room, p_caps[p_groups[1]], v_caps[g.n])
                   for update skip locked) r
        )
        select array(select p.tid from probe p order by p.rank, p.seq limit least(v_room, p_caps[p_groups[1]])),
               (select count(*) from probe), false
          into v_tids, v_locked, more;
    else
        with probe as materialized (
            select r.tid, r.seq, r.rank, g.job_type, g.grp, row_number() over (partition by g.n order by r.rank, r.seq) as place
              from unnest(p_types, p_groups, p_fresh, p_lo, p_floor, p_hi)
                   with ordinality as g (job_type, grp, fresh, lo, floor, hi, n)
             cross join lateral (
                select w.ctid as tid, w.seq, w.rank from laneway.ready w
                 where w.job_type = g.job_type and w.fresh = g.fresh
                   and (w.rank, w.seq) > (g.lo, g.floor) and w.rank <= g.hi
                 order by w.rank, w.seq
                 limit least(v_probe, p_caps[g.grp], v_caps[g.n])
                   for update skip locked) r
        ), edge as materialized (
            -- A range that filled its probe may have more rows after the last one: only rows up to the first
            -- such edge are known to be next in order.
            select p.rank, p.seq from probe p
             where v_probe < v_room and p.place = v_probe order by p.rank, p.seq limit 1
        ), over as materialized (
            -- Beyond the capacity of a limit, counting all earlier rows of the probe: may skip a few too many,
            -- but never exceeds a limit, and the first in order always passes.
            select x.seq from (
                select p.seq, r.room, row_number() over (partition by r.limit_name order by p.rank, p.seq) as place
                  from unnest(v_needy, v_needed, v_rooms) as r (job_type, limit_name, room)
                  join probe p on p.job_type = r.job_type) x
             where x.place > x.room
        ), picked as materialized (
            select q.tid from (
                select p.*, row_number() over (partition by p.grp order by p.rank, p.seq) as in_group from probe p
                 where v_needy is null or p.seq not in (select o.seq from over o)) q
             where q.in_group <= p_caps[q.grp]
               and not exists (select from edge e where (q.rank, q.seq) > (e.rank, e.seq))
             order by q.rank, q.seq limit v_room
        )
        select array(select q.tid from picked q), (select count(*) from probe), exists (select from edge),
               limited or (v_needy is not null and exists (select from over))
          into v_tids, v_locked, more, limited;
    end if;
    with gone as (
        delete from laneway.ready w where w.ctid = any (v_tids)
        returning w.seq, w.job_type, w.rank, w.attempt, w.retries, w.fresh, w.sealed, w.ready_at
    ), claimed as materialized (
        select g.*, j.id, j.workspace, j.max_retries, j.keyed, j.concurrency_key, j.payload, j.tags, j.created_by,
               j.flow, c.checkpoint
          from gone g
         -- offset 0: by index from the row to its job, whatever the statistics are.
         cross join lateral (
            select b.id, b.workspace, b.payload::text as payload, b.unique_key is not null as keyed, b.tags, b.created_by, b.flow,
                   -- Analyses have three separate tries, and keys are only for runs.
                   case when v_analyze and g.job_type like E'\x01%' then 2 else b.max_retries end as max_retries,
                   case when v_analyze and g.job_type like E'\x01%' then null else b.concurrency_key end as concurrency_key
              from laneway.jobs b where b.seq = g.seq offset 0) j
          left join lateral (select s.checkpoint::text as checkpoint from laneway.progress s
                              where g.attempt > 0 and s.seq = g.seq offset 0) c on true
         order by g.rank, g.seq
    ), leased as (
        insert into laneway.lease (seq, attempt, worker_id, lane, job_type, workspace, rank, retries, max_retries,
                                   keyed, lease_seconds, claimed_at, lease_until, sealed, flow, limits)
        select c.seq, c.attempt + 1, p_worker, p_lane, c.job_type, c.workspace, c.rank, c.retries, c.max_retries,
               c.keyed, v_lane.lease_seconds, v_now, v_now + make_interval(secs => v_lane.lease_seconds), c.sealed, c.flow,
               case when v_needy is not null then (
                   select array_agg(p.limit_name) from unnest(v_needy, v_needed) as p (job_type, limit_name)
                    where p.job_type = c.job_type) end
          from claimed c
         where c.concurrency_key is null and (v_guarded is null or c.sealed or c.job_type <> all (v_guarded))
    )
    select array_agg(c.seq), array_agg(c.id), array_agg(c.attempt + 1), array_agg(c.rank), array_agg(c.job_type),
           array_agg(c.payload), array_agg(c.checkpoint), array_agg(c.retries), array_agg(c.fresh),
           array_agg(row(c.seq, c.workspace, c.concurrency_key, c.rank, c.job_type, c.attempt, c.retries, c.sealed,
                         c.ready_at)::laneway.key_waiters)
               filter (where c.concurrency_key is not null or (not c.sealed and c.job_type = any (v_guarded))),
           array_agg(c.seq) filter (where c.sealed),
           array_agg(c.max_retries), case when bool_or(c.tags <> '{}') then array_agg(array_to_json(c.tags)::text) end,
           case when bool_or(c.created_by is not null) then array_agg(c.created_by) end
      into seqs, ids, attempts, ranks, job_types, payloads, checkpoints, retries, freshes,
           v_second, v_sealed, retry_limits, tag_lists, submitters
      from claimed c;

    if p_plain and v_second is not null then
        -- Not leased, so they wait as before.
        insert into laneway.ready (seq, job_type, fresh, rank, attempt, retries, sealed, ready_at)
        select k.seq, k.job_type, false, k.rank, k.attempt, k.retries, k.sealed, k.ready_at from unnest(v_second) k;
        v_returned := array(select k.seq from unnest(v_second) k);
        v_second := null;
        refused := true;
    end if;
    if v_guarded is not null and v_second is not null then
        v_unapproved := laneway.lacking_approval(v_second);
    end if;
    if v_unapproved is not null then
        perform laneway.return_to_approval(array_agg(k), v_now)
           from unnest(v_second) k where k.seq = any (v_unapproved);
        select array_agg(k) into v_second from unnest(v_second) k where k.seq <> all (v_unapproved);
    end if;
    if v_second is not null then
        v_lost := laneway.take_keys(array(select k from unnest(v_second) k where k.concurrency_key is not null));
        insert into laneway.lease (seq, attempt, worker_id, lane, job_type, workspace, rank, retries, max_retries,
                                   keyed, lease_seconds, claimed_at, lease_until, sealed, concurrency_key, flow, limits)
        select c.seq, c.attempt + 1, p_worker, p_lane, c.job_type, c.workspace, c.rank, c.retries, j.max_retries,
               j.keyed, v_lane.lease_seconds, v_now, v_now + make_interval(secs => v_lane.lease_seconds), c.sealed,
               c.concurrency_key, j.flow,
               (select array_agg(p.limit_name) from unnest(v_needy, v_needed) as p (job_type, limit_name)
                 where p.job_type = c.job_type)
          from unnest(v_second) c
         cross join lateral (select b.max_retries, b.unique_key is not null as keyed, b.flow
                               from laneway.jobs b where b.seq = c.seq offset 0) j
         where c.seq not in (select unnest(v_lost));
        parked := cardinality(v_lost);
    end if;
    v_lost := v_lost || v_unapproved || v_returned;
    if cardinality(v_lost) > 0 then
        select array_agg(x.seq), array_agg(x.id), array_agg(x.attempt), array_agg(x.rank), array_agg(x.job_type),
               array_agg(x.payload), array_agg(x.checkpoint), array_agg(x.retry), array_agg(x.is_fresh),
               array_agg(x.most), case when tag_lists is not null then array_agg(x.tag_list) end,
               case when submitters is not null then array_agg(x.submitter) end
          into seqs, ids, attempts, ranks, job_types, payloads, checkpoints, retries, freshes, retry_limits, tag_lists,
               submitters
          from (select * from unnest(seqs, ids, attempts, ranks, job_types, payloads, checkpoints, retries, freshes,
                                     retry_limits, tag_lists, submitters)
                         with ordinality as u (seq, id, attempt, rank, job_type, payload, checkpoint, retry, is_fresh,
                                               most, tag_list, submitter, n)
                 where u.seq not in (select unnest(v_lost)) order by u.n) x;
    end if;
    state := 'ok';
    left_over := v_locked - coalesce(cardinality(v_lost), 0) - coalesce(cardinality(seqs), 0);
    more := more or cardinality(v_lost) > 0 is true or coalesce(cardinality(seqs), 0) >= v_room;
    if seqs is null then
        if v_needy is not null then
            perform laneway.update_turns(p_worker, p_lane, 'claim', array_agg(p.limit_name), array_agg(p.head), null,
                                         array_agg(p.room = 0), v_yielded, v_now)
               from unnest(v_needed, v_heads, v_rooms) as p (limit_name, head, room);
        end if;
        if v_absent is not null then perform laneway.leave_turns(p_worker, p_lane, 'claim', v_needed); end if;
        return;
    end if;
    -- For a limited type, no more rows than its capacity were read.
    more := more or v_needy && job_types is true;
    if cardinality(seqs) >= v_free then
        -- The lane is full now: another call would be refused.
        more := false;
        limited := true;
    end if;
    if v_sealed is not null then
        select array_agg(s) into v_changed from unnest(v_sealed) s
         cross join lateral (select b.payload from laneway.jobs b where b.seq = s offset 0) j
          left join lateral (select a.analysis, a.seal, a.decision from laneway.approvals a where a.seq = s offset 0) v on true
         where laneway.seal(j.payload, v.analysis) is distinct from v.seal
            or (v.decision in ('approved', 'automatic')) is not true;
    end if;
    forged := case when v_changed is null then array_fill(false, array[cardinality(seqs)])
                   else array(select s = any (v_changed) from unnest(seqs) with ordinality as u (s, n) order by n) end;
    perform laneway.count_slots(p_lane, p_worker, cardinality(seqs));
    if v_needy is not null then
        select array_agg(x.limit_name), array_agg(x.n) into v_taken, v_counts
          from (select p.limit_name, count(*)::integer as n from unnest(job_types) as y (job_type)
                  join unnest(v_needy, v_needed) as p (job_type, limit_name) on p.job_type = y.job_type
                 group by p.limit_name) x;
        if v_counts is not null then
            perform laneway.take_limits(p_worker, v_taken, v_counts, v_now);
        end if;
        perform laneway.update_turns(p_worker, p_lane, 'claim', array_agg(p.limit_name), array_agg(p.head),
                                     array_agg(x.n), array_agg(coalesce(x.n, 0) >= p.room), v_yielded, v_now)
           from unnest(v_needed, v_heads, v_rooms) as p (limit_name, head, room)
           left join unnest(v_taken, v_counts) as x (limit_name, n) on x.limit_name = p.limit_name;
    end if;
    if v_absent is not null then perform laneway.leave_turns(p_worker, p_lane, 'claim', v_needed); end if;
    if exists (select from laneway.watches) then
        perform laneway.emit(seqs, 'claimed');
    end if;
end $$;
