-- How long a job waits before its n-th retry, by the policy of its type.
create or replace function laneway.retry_delay(p_job_type text, p_retries integer) returns interval
language sql volatile as $$
    select make_interval(secs => least(coalesce(max(t.retry_cap_s), 60),
               coalesce(max(t.retry_base_s), 1)
                 * power(coalesce(max(t.retry_factor), 2), least(p_retries - 1, 60)))
               * (1 + (2 * random() - 1) * coalesce(max(t.retry_jitter), 0.2)))
      from laneway.job_types t where t.name = p_job_type
$$;

-- Ends the attempts named by (seq, attempt), each if it is the one running, by its verdict:
-- finish, fail (may be retried), giveup (may not), snooze, release, cancel, lost, stalled.
-- Exactly one terminal write per job. Answers only what is not a plain accepted finish:
-- accepted, cancel_requested, fenced or busy (ask again) per job, with the status it now has.
-- A repeated call for an attempt that this call already ended is answered as the first was.
create or replace function laneway.settle(
    p_seqs bigint[], p_attempts integer[], p_verdicts text[], p_results text[], p_errors text[],
    p_delays double precision[], p_ran double precision[], p_now timestamptz default null)
returns table (seq bigint, attempt integer, answer text, status text)
language plpgsql volatile
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
begin
    with given as materialized (
        select distinct on (g.seq, g.attempt) g.*
          from unnest(p_seqs, p_attempts, p_verdicts, p_results, p_errors, p_delays, p_ran)
               with ordinality as g (seq, attempt, verdict, result, error, delay, ran, n)
         order by g.seq, g.attempt, g.n
    ), held as materialized (
        -- By index whatever the statistics say. A row that somebody holds is left for another call:
        -- one cancel in an open transaction must not keep all other jobs from ending.
        select l.ctid as tid from laneway.lease l
         where l.seq = any (p_seqs) and ((l.seq, l.attempt) in (select g.seq, g.attempt from given g)) is true
           for update skip locked
    ), ended as (
        delete from laneway.lease l where l.ctid = any (array(select h.tid from held h))
        returning l.*
    ), judged as materialized (
        select e.*, g.verdict, g.result, g.error, g.delay,
               case when g.verdict = 'cancel' or e.cancel_requested_at is not null then 'cancelled'
                    when g.verdict = 'finish' then 'completed'
                    when g.verdict in ('release', 'snooze') then 'approved'
                    when g.verdict in ('fail', 'lost', 'stalled') and e.retries < e.max_retries then 'approved'
                    else 'failed' end as status,
               coalesce(e.started_at, v_now - make_interval(secs => g.ran)) as began
          from ended e join given g on g.seq = e.seq and g.attempt = e.attempt
    ), concluded as (
        insert into laneway.outcome (seq, status, workspace, job_type, priority, attempt, retries, lane, worker_id,
                                     claimed_at, started_at, finished_at, reclaimed, cancel_requested_at,
                                     cancel_by, cancel_reason, result, error)
        select j.seq, j.status, j.workspace, j.job_type, -j.rank, j.attempt, j.retries, j.lane, j.worker_id,
               j.claimed_at, j.began, v_now, j.verdict in ('lost', 'stalled'), j.cancel_requested_at, j.cancel_by,
               coalesce(j.cancel_reason, case when j.verdict = 'cancel' then j.error::jsonb ->> 'message' end),
               j.result::jsonb, j.error::jsonb
          from judged j where j.status <> 'approved'
    ), kept as (
        insert into laneway.attempts (seq, attempt, outcome, lane, worker_id, claimed_at, started_at, finished_at, error)
        select j.seq, j.attempt,
               case j.verdict when 'release' then 'released' when 'snooze' then 'snoozed' when 'fail' then 'failed'
                              else j.verdict end,
               j.lane, j.worker_id, j.claimed_at, j.began, v_now, j.error::jsonb
          from judged j where j.status = 'approved'
    ), waiting as materialized (
        select j.seq, j.job_type, j.rank, j.attempt,
               j.retries + (j.verdict in ('fail', 'lost', 'stalled'))::integer as retries,
               v_now + coalesce(make_interval(secs => j.delay),
                                case when j.verdict in ('fail', 'lost', 'stalled')
                                     then laneway.retry_delay(j.job_type, j.retries + 1) end) as run_at
          from judged j where j.status = 'approved'
    ), back as (
        insert into laneway.ready (seq, job_type, fresh, rank, attempt, retries, ready_at)
        select w.seq, w.job_type, false, w.rank, w.attempt, w.retries, v_now
          from waiting w where w.run_at is null or w.run_at <= v_now
    ), later as (
        insert into laneway.delayed (seq, job_type, rank, attempt, retries, run_at)
        select w.seq, w.job_type, w.rank, w.attempt, w.retries, w.run_at
          from waiting w where w.run_at > v_now
    ), freed as (
        -- offset 0: from the job to its key, by index, whatever the statistics say.
        delete from laneway.job_keys k
         where k.ctid = any (array(
            select h.tid from judged j
             cross join lateral (select b.unique_key from laneway.jobs b where b.seq = j.seq offset 0) b
             cross join lateral (select y.ctid as tid from laneway.job_keys y
                                  where y.workspace = j.workspace and y.job_type = j.job_type
                                    and y.unique_key = b.unique_key and y.seq = j.seq offset 0) h
             where j.keyed and j.status <> 'approved'))
    ), returned as (
        update laneway.slot_usage u set running = u.running - c.n
          from (select e.lane, e.worker_id, count(*) as n from ended e
                 group by e.lane, e.worker_id order by e.lane, e.worker_id) c
         where u.lane = c.lane and u.worker_id = c.worker_id
           and u.lane = any (array(select e.lane from ended e))
           and u.worker_id = any (array(select e.worker_id from ended e))
    )
    select count(*), array_agg(j.seq) filter (where j.verdict <> 'finish' or j.status <> 'completed'),
           array_agg(j.attempt) filter (where j.verdict <> 'finish' or j.status <> 'completed'),
           array_agg(j.status) filter (where j.verdict <> 'finish' or j.status <> 'completed'),
           array_agg(case when j.cancel_requested_at is not null then 'cancel_requested' else 'accepted' end)
               filter (where j.verdict <> 'finish' or j.status <> 'completed'),
           array_agg(j.seq), array_agg(j.attempt)
      into v_ended, v_odd, v_odd_attempts, v_odd_status, v_odd_answers, v_seqs, v_attempts
      from judged j;

    return query select * from unnest(v_odd, v_odd_attempts, v_odd_answers, v_odd_status);

    if v_ended < cardinality(p_seqs) then
        return query
        select g.seq, g.attempt,
               case when o.seq is not null and o.cancel_requested_at is not null then 'cancel_requested'
                    when o.seq is not null or a.seq is not null then 'accepted'
                    when b.seq is not null then 'busy'
                    else 'fenced' end,
               coalesce(o.status, case when a.seq is not null then 'approved' end)
          from unnest(p_seqs, p_attempts, p_verdicts) as g (seq, attempt, verdict)
          left join lateral (
            select x.seq, x.status, x.cancel_requested_at from laneway.outcome x
             where x.seq = g.seq and x.attempt = g.attempt
               and x.claimed_at is not null  -- null: cancelled while it waited, after that attempt
               and not x.reclaimed
               and (x.status = 'cancelled' or (g.verdict = 'finish') = (x.status = 'completed')) offset 0) o on true
          left join lateral (
            select x.seq from laneway.attempts x
             where x.seq = g.seq and x.attempt = g.attempt
               and x.outcome = case g.verdict when 'release' then 'released' when 'snooze' then 'snoozed'
                                              when 'fail' then 'failed' end
               and not x.reclaimed offset 0) a on true
          left join lateral (
            select x.seq from laneway.lease x where x.seq = g.seq and x.attempt = g.attempt offset 0) b on true
         where (g.seq, g.attempt) not in (select * from unnest(v_seqs, v_attempts));
    end if;
end $$;
