-- The pause before the n-th retry of a job, by the policy of its type.
create or replace function laneway.retry_delay(p_job_type text, p_retries integer) returns interval
language sql volatile as $$
    select make_interval(secs => least(coalesce(max(t.retry_cap_s), 60),
               coalesce(max(t.retry_base_s), 1)
                 -- Earlier releases published larger factors, which would overflow.
                 * power(least(coalesce(max(t.retry_factor), 2), 100000), least(p_retries - 1, 60)))
               * (1 + (2 * random() - 1) * coalesce(max(t.retry_jitter), 0.2)))
      from laneway.job_types t where t.name = p_job_type
$$;

-- The minimum pause of a job that returns without charge for the n-th time: a handler that snoozes for no time, or
-- a worker that releases its jobs, must not keep the database busy.
create or replace function laneway.uncharged_pause(p_verdict text, p_times integer) returns interval
language sql immutable as $$
    select make_interval(secs => case when p_times > 10 then least(60, p_times / 20.0)
                                      when p_verdict = 'snooze' then 0.1 else 0 end)
$$;

-- Deletes attempts up to the given one that ended without charge, and their logs. With its owner's rights:
-- workers may not delete attempts.
create or replace function laneway.delete_uncharged_attempts(p_seq bigint, p_upto integer)
returns void language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    with gone as (
        delete from laneway.attempts a
         where a.seq = p_seq and a.attempt <= p_upto and a.outcome in ('released', 'snoozed', 'waited')
        returning a.attempt
    )
    delete from laneway.logs l where l.seq = p_seq and l.attempt in (select g.attempt from gone g);
end $$;

-- The status of one job, null for an unknown job.
create or replace function laneway.status_of(p_seq bigint) returns text language sql stable as $$
    select v.status from laneway.jobs_view v where v.seq = p_seq
$$;

-- Completes the given attempts, except any that need more than a row of `outcome`: a unique key, a concurrency key,
-- limits, a requested cancel, an analysis. Returns the attempts that it ended, and their slots, which are not
-- released yet: keys are locked before slots.
-- Each outcome comes from a deleted lease. A lease that was locked, renewed or changed meanwhile is left: its new
-- version is not visible to this statement, so that nothing is deleted.
create or replace function laneway.complete_plain(
    p_seqs bigint[], p_attempts integer[], p_results text[], p_ran double precision[], p_now timestamptz,
    out seqs bigint[], out attempts integer[], out lanes text[], out workers uuid[], out slots integer[], out in_flow boolean,
    out job_types text[])
language plpgsql volatile
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = on
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
    with held as materialized (
        select h.tid, g.result, g.ran
          from unnest(p_seqs, p_attempts, p_results, p_ran) as g (seq, attempt, result, ran)
         cross join lateral (
            select l.ctid as tid from laneway.lease l
             where l.seq = g.seq and l.attempt = g.attempt and l.job_type >= E'\x02' and not l.keyed
               and l.cancel_requested_at is null and l.concurrency_key is null and l.limits is null
            offset 0 for update skip locked) h
    ), ended as (
        delete from laneway.lease l using held h where l.ctid = h.tid
        returning l.seq, l.workspace, l.job_type, l.rank, l.attempt, l.retries, l.lane, l.worker_id, l.claimed_at,
                  l.started_at, l.flow, h.result, h.ran
    ), concluded as (
        insert into laneway.outcome (seq, status, workspace, job_type, priority, attempt, retries, lane, worker_id,
                                     claimed_at, started_at, finished_at, result)
        select e.seq, 'completed', e.workspace, e.job_type, -e.rank, e.attempt, e.retries, e.lane, e.worker_id,
               e.claimed_at, coalesce(e.started_at, p_now - make_interval(secs => e.ran)), p_now, e.result::jsonb
          from ended e
    ), used as materialized (
        select e.lane, e.worker_id, e.job_type, count(*)::integer as n from ended e group by e.lane, e.worker_id, e.job_type
    )
    select array_agg(e.seq), array_agg(e.attempt), (select array_agg(u.lane) from used u),
           (select array_agg(u.worker_id) from used u), (select array_agg(u.n) from used u),
           bool_or(e.flow is not null), (select array_agg(u.job_type) from used u)
      into seqs, attempts, lanes, workers, slots, in_flow, job_types
      from ended e;
end $$;

-- Ends attempts by (seq, attempt), each if it is the running one, by its verdict: finish, fail (may be retried),
-- giveup (may not), snooze, release, cancel, lost, spared (lost, but not charged), stalled, analyzed (the result
-- is the analysis), wait (the result is the name of a stored wait), confirm (finished in the handler's own
-- transaction: if the attempt still runs, that was rolled back, and it fails with the given error).
-- Exactly one terminal write per job. Returns everything except plainly accepted finishes: accepted,
-- cancel_requested, fenced or busy (try again) per job, with its status now; promoted for each job that got a
-- key or waited for one of these, with its job type in place of the status; freed for each job type that may have
-- waited for a released limit, with its name there; arrived if the caller should call laneway.advance.
-- A repeated call for an attempt that this call already ended returns the same as the first.
create or replace function laneway.settle(
    p_seqs bigint[], p_attempts integer[], p_verdicts text[], p_results text[], p_errors text[],
    p_delays double precision[], p_ran double precision[], p_now timestamptz default null)
returns table (seq bigint, attempt integer, answer text, status text)
language plpgsql volatile
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_ended integer;
    v_seqs bigint[];
    v_attempts integer[];
    v_odd bigint[];
    v_odd_attempts integer[];
    v_odd_answers text[];
    v_odd_status text[];
    v_odd_ranks integer[];
    v_analyzed record;
    v_keys laneway.key_holders[];
    v_often bigint[];
    v_suspended laneway.suspended_job[];
    v_resumed bigint[];
    v_in_flow boolean;
    -- The job types and statuses of the jobs that end.
    v_types text[];
    v_statuses text[];
    v_mine laneway.held_resources;
    v_own laneway.held_resources;
    -- Ended by complete_plain.
    v_plain bigint[];
    v_plain_attempts integer[];
    v_plain_in_flow boolean;
    v_plain_types text[];
begin
    if p_errors is null and p_delays is null and 'finish' = all (p_verdicts) then
        select c.seqs, c.attempts, c.lanes, c.workers, c.slots, c.in_flow, c.job_types
          into v_plain, v_plain_attempts, v_own.lanes, v_own.workers, v_own.slots, v_plain_in_flow, v_plain_types
          from laneway.complete_plain(p_seqs, p_attempts, p_results, p_ran, v_now) c;
        if cardinality(v_plain) = cardinality(p_seqs) then
            return query select * from laneway.follow_ends(v_plain, v_plain_in_flow, v_plain_types, '{completed}');
            -- Last: claims wait for the counter of slots.
            perform laneway.release_resources(v_own);
            if exists (select from laneway.watches) then
                perform laneway.emit(v_plain, 'settled');
            end if;
            return;
        end if;
        -- The others have more to release, or need an answer.
        select array_agg(g.seq), array_agg(g.attempt), array_agg(g.verdict), array_agg(g.result), array_agg(g.ran)
          into p_seqs, p_attempts, p_verdicts, p_results, p_ran
          from unnest(p_seqs, p_attempts, p_verdicts, p_results, p_ran) as g (seq, attempt, verdict, result, ran)
         where (g.seq, g.attempt) not in (select * from unnest(v_plain, v_plain_attempts));
    end if;
    if 'confirm' = any (p_verdicts) then
        v_own := laneway.pop_self_finished(p_seqs);
    end if;
    with given as materialized (
        select distinct on (g.seq, g.attempt) g.*
          from unnest(p_seqs, p_attempts, p_verdicts, p_results, p_errors, p_delays, p_ran)
               with ordinality as g (seq, attempt, verdict, result, error, delay, ran, n)
         order by g.seq, g.attempt, g.n
    ), held as materialized (
        -- By index, whatever the statistics are. Skips locked rows until another call: one cancel in an open
        -- transaction must not delay the end of all other jobs.
        select l.ctid as tid from laneway.lease l
         where l.seq = any (p_seqs) and ((l.seq, l.attempt) in (select g.seq, g.attempt from given g)) is true
           for update skip locked
    ), ended as (
        delete from laneway.lease l where l.ctid = any (array(select h.tid from held h))
        returning l.*
    ), judged as materialized (
        select e.*, g.verdict, g.result, g.error,
               -- NaN sorts above all numbers; infinity becomes a century.
               case when g.delay is not null
                    then make_interval(secs => case when g.delay = 'NaN' then 0
                                                    else greatest(0, least(g.delay, 3162240000)) end) end as pause,
               case when g.verdict = 'cancel' or e.cancel_requested_at is not null then 'cancelled'
                    when g.verdict = 'finish' and e.job_type not like E'\x01%' then 'completed'
                    when g.verdict = 'analyzed' and e.job_type like E'\x01%' then 'analyzed'
                    when g.verdict = 'wait' and e.job_type not like E'\x01%' then 'waiting'
                    when g.verdict in ('release', 'snooze', 'spared')
                      or (g.verdict in ('fail', 'lost', 'stalled', 'confirm') and e.retries < e.max_retries)
                    then case when e.job_type like E'\x01%' then 'pending' else 'approved' end
                    else 'failed' end as status,
               -- The job's own type, also if this was an analysis.
               case when e.job_type < E'\x02' then ltrim(e.job_type, E'\x01') else e.job_type end as own_type,
               coalesce(e.started_at, v_now - make_interval(secs => g.ran)) as began,
               -- Attempts without charge, except those that ended because the handler waited.
               e.attempt - e.retries - case when g.verdict in ('release', 'snooze', 'spared') and e.attempt - e.retries > 10
                    then (select count(*) from laneway.handler_waits h where h.seq = e.seq)::integer else 0 end as uncharged
          from ended e join given g on g.seq = e.seq and g.attempt = e.attempt
    ), concluded as (
        insert into laneway.outcome (seq, status, workspace, job_type, priority, attempt, retries, lane, worker_id,
                                     claimed_at, started_at, finished_at, reclaimed, cancel_requested_at,
                                     cancel_by, cancel_reason, result, error, error_type)
        select j.seq, j.status, j.workspace, j.own_type, -j.rank, j.attempt, j.retries, j.lane, j.worker_id,
               j.claimed_at, j.began, v_now, j.verdict in ('lost', 'spared', 'stalled'), j.cancel_requested_at, j.cancel_by,
               coalesce(j.cancel_reason, case when j.verdict = 'cancel' then j.error::jsonb ->> 'message' end),
               case when j.verdict not in ('analyzed', 'wait') then j.result::jsonb end, j.error::jsonb, left(j.error::jsonb ->> 'type', 200)
          from judged j where j.status in ('completed', 'failed', 'cancelled')
    ), kept as (
        insert into laneway.attempts (seq, attempt, outcome, lane, worker_id, claimed_at, started_at, finished_at, error)
        select j.seq, j.attempt,
               case j.verdict when 'release' then 'released' when 'snooze' then 'snoozed' when 'fail' then 'failed'
                              when 'wait' then 'waited' when 'confirm' then 'failed' when 'spared' then 'lost' else j.verdict end,
               j.lane, j.worker_id, j.claimed_at, j.began, v_now, j.error::jsonb
          from judged j where j.status not in ('completed', 'failed', 'cancelled')
    ), waiting as materialized (
        select j.seq, j.job_type, j.rank, j.attempt, j.sealed,
               j.retries + (j.verdict in ('fail', 'lost', 'stalled', 'confirm'))::integer as retries,
               v_now + case when j.verdict in ('release', 'snooze')
                            then greatest(j.pause, laneway.uncharged_pause(j.verdict, j.uncharged))
                            when j.verdict = 'spared'
                            then greatest(coalesce(j.pause, laneway.retry_delay(j.own_type, greatest(1, j.uncharged))),
                                          laneway.uncharged_pause(j.verdict, j.uncharged))
                            else coalesce(j.pause, laneway.retry_delay(j.own_type, j.retries + 1)) end as run_at
          from judged j where j.status in ('approved', 'pending')
    ), back as (
        insert into laneway.ready (seq, job_type, fresh, rank, attempt, retries, sealed, ready_at)
        select w.seq, w.job_type, false, w.rank, w.attempt, w.retries, w.sealed, v_now
          from waiting w where w.run_at is null or w.run_at <= v_now
    ), later as (
        insert into laneway.delayed (seq, job_type, rank, attempt, retries, sealed, run_at)
        select w.seq, w.job_type, w.rank, w.attempt, w.retries, w.sealed, w.run_at
          from waiting w where w.run_at > v_now
    ), freed as (
        -- offset 0: by index from the job to its key, whatever the statistics are.
        delete from laneway.job_keys k
         where k.ctid = any (array(
            select h.tid from judged j
             cross join lateral (select b.unique_key from laneway.jobs b where b.seq = j.seq offset 0) b
             cross join lateral (select y.ctid as tid from laneway.job_keys y
                                  where y.workspace = j.workspace and y.job_type = j.own_type
                                    and y.unique_key = b.unique_key and y.seq = j.seq offset 0) h
             where j.keyed and j.status in ('completed', 'failed', 'cancelled')))
    ), ends as materialized (
        select j.own_type, j.status from judged j where j.status in ('completed', 'failed', 'cancelled')
         group by j.own_type, j.status
    ), slots as materialized (
        select e.lane, e.worker_id, count(*)::integer as n from ended e group by e.lane, e.worker_id
    ), limits as materialized (
        select e.worker_id, m.name, count(*)::integer as n from ended e cross join unnest(e.limits) as m (name)
         where e.limits is not null group by e.worker_id, m.name
    )
    select count(*), array_agg(j.seq) filter (where j.verdict <> 'finish' or j.status <> 'completed'),
           array_agg(j.attempt) filter (where j.verdict <> 'finish' or j.status <> 'completed'),
           array_agg(j.status) filter (where j.verdict <> 'finish' or j.status <> 'completed'),
           array_agg(case when j.cancel_requested_at is not null then 'cancel_requested' else 'accepted' end)
               filter (where j.verdict <> 'finish' or j.status <> 'completed'),
           array_agg(j.rank) filter (where j.verdict <> 'finish' or j.status <> 'completed'),
           array_agg(j.seq), array_agg(j.attempt),
           array_agg(row(j.workspace, j.concurrency_key, j.seq)::laneway.key_holders)
               filter (where j.concurrency_key is not null),
           array_agg(j.seq) filter (where j.verdict in ('release', 'snooze', 'wait') and j.attempt - j.retries > 100),
           array_agg(row(j.seq, j.job_type, j.rank, j.attempt, j.retries, j.sealed, j.result)::laneway.suspended_job)
               filter (where j.status = 'waiting'),
           bool_or(j.flow is not null),
           (select array_agg(e.own_type) from ends e), (select array_agg(e.status) from ends e),
           (select array_agg(s.lane) from slots s), (select array_agg(s.worker_id) from slots s),
           (select array_agg(s.n) from slots s),
           (select array_agg(m.worker_id) from limits m), (select array_agg(m.name) from limits m),
           (select array_agg(m.n) from limits m)
      into v_ended, v_odd, v_odd_attempts, v_odd_status, v_odd_answers, v_odd_ranks, v_seqs, v_attempts, v_keys,
           v_often, v_suspended, v_in_flow, v_types, v_statuses, v_mine.lanes, v_mine.workers, v_mine.slots,
           v_mine.limit_workers, v_mine.limit_names, v_mine.limit_counts
      from judged j;

    if 'analyzed' = any (v_odd_status) then
        for v_analyzed in
            select g.seq, g.attempt, g.result, x.rank, x.n
              from unnest(p_seqs, p_attempts, p_verdicts, p_results) as g (seq, attempt, verdict, result)
              join unnest(v_odd, v_odd_attempts, v_odd_status, v_odd_ranks) with ordinality as x (seq, attempt, status, rank, n)
                on x.seq = g.seq and x.attempt = g.attempt and x.status = 'analyzed'
             order by g.seq
        loop
            perform laneway.save_analysis(v_analyzed.seq, coalesce(v_analyzed.result, '{}')::jsonb, v_now);
            v_odd_status[v_analyzed.n] := laneway.apply_approval_policy(
                v_analyzed.seq, v_analyzed.rank, v_analyzed.attempt, v_now);
        end loop;
    end if;
    if v_suspended is not null then
        v_resumed := laneway.suspend(v_suspended);
        v_odd_status := array(select case when x.seq = any (v_resumed) then 'approved' else x.status end
                                from unnest(v_odd, v_odd_status) with ordinality as x (seq, status, n) order by x.n);
    end if;
    if v_often is not null then
        -- For jobs that return again and again, keep the newest hundred.
        perform laneway.delete_uncharged_attempts(u.seq, u.attempt - 100)
           from unnest(v_seqs, v_attempts) as u (seq, attempt) where u.seq = any (v_often);
    end if;
    if v_keys is not null then
        select array_agg(k.workspace), array_agg(k.concurrency_key), array_agg(k.seq)
          into v_mine.key_spaces, v_mine.keys, v_mine.key_seqs from unnest(v_keys) k;
    end if;
    if v_own.lanes is not null then
        v_mine := laneway.add_resources(v_mine, v_own);
    end if;
    return query select * from laneway.follow_ends(
        v_plain || v_seqs, v_in_flow or v_plain_in_flow, v_plain_types || v_types,
        case when v_plain is not null then v_statuses || 'completed'::text else v_statuses end);
    -- Last: claims wait for the counter of slots.
    if v_mine.lanes is not null then
        return query select p.seq, 0, 'promoted', p.job_type from laneway.release_resources(v_mine) p;
    end if;
    if v_mine.limit_names is not null then
        return query select 0::bigint, 0, 'freed', f from laneway.freed_types(v_mine.limit_names, v_mine.limit_counts) f;
    end if;
    if 'confirm' = any (p_verdicts) and exists (select from laneway.arrivals) then
        return query select 0::bigint, 0, 'arrived', null::text;
    end if;
    if v_odd is not null then
        return query select * from unnest(v_odd, v_odd_attempts, v_odd_answers, v_odd_status);
    end if;

    if v_ended < cardinality(p_seqs) then
        return query
        select g.seq, g.attempt,
               case when o.seq is not null and o.cancel_requested_at is not null then 'cancel_requested'
                    when o.seq is not null or a.seq is not null then 'accepted'
                    when b.seq is not null then 'busy'
                    else 'fenced' end,
               coalesce(o.status, case when a.seq is not null then laneway.status_of(g.seq) end)
          from unnest(p_seqs, p_attempts, p_verdicts) as g (seq, attempt, verdict)
          left join lateral (
            select x.seq, x.status, x.cancel_requested_at from laneway.outcome x
             where x.seq = g.seq and x.attempt = g.attempt
               and x.claimed_at is not null  -- null: cancelled while it waited, after that attempt
               and not x.reclaimed
               and (x.status = 'cancelled' or (g.verdict in ('finish', 'confirm')) = (x.status = 'completed')) offset 0) o on true
          left join lateral (
            select x.seq from laneway.attempts x
             where x.seq = g.seq and x.attempt = g.attempt
               and x.outcome = case g.verdict when 'release' then 'released' when 'snooze' then 'snoozed'
                                              when 'fail' then 'failed' when 'confirm' then 'failed'
                                              when 'analyzed' then 'analyzed' when 'wait' then 'waited' end
               and not x.reclaimed offset 0) a on true
          left join lateral (
            select x.seq from laneway.lease x where x.seq = g.seq and x.attempt = g.attempt offset 0) b on true
         where (g.seq, g.attempt) not in (select * from unnest(v_seqs, v_attempts));
    end if;
    v_seqs := v_plain || v_seqs;
    if v_seqs is not null and exists (select from laneway.watches) then
        perform laneway.emit(v_seqs, 'settled');
    end if;
end $$;
