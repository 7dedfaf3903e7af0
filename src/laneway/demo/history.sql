-- Inserts ended jobs with a past date, so that charts and lists of the demo are not empty at its start.
-- Every row carries the tag `sample`. Only the demo runs this, in the database that it created for itself.
with moment as materialized (
    select clock_timestamp() as at
), given as materialized (
    select r.* from jsonb_to_recordset(%(rows)s::text::jsonb) as r (
        n integer, id uuid, job_type text, lane text, payload jsonb, priority integer, tags text[], created_by text,
        ago double precision, waited double precision, ran double precision, status text, attempts integer,
        result jsonb, error jsonb, earlier jsonb, log text, schedule text)
), worker as (
    insert into laneway.workers (id, name, host, pid, code, job_types, lanes, concurrency, started_at, seen_at, stopped_at)
    select %(worker)s::uuid, 'previous-release', %(host)s, 1, 'sample', array(select distinct g.job_type from given g),
           null, 100, m.at - interval '25 hours', m.at - interval '20 seconds', m.at - interval '20 seconds'
      from moment m
), submitted as (
    insert into laneway.jobs (id, job_type, payload, priority, tags, created_at, created_by, max_retries)
    select g.id, g.job_type, g.payload, g.priority, g.tags, m.at - make_interval(secs => g.ago), g.created_by,
           greatest(g.attempts - 1, 0)
      from given g cross join moment m order by g.n
    returning seq, id
), ended as materialized (
    select s.seq, g.*, m.at - make_interval(secs => g.ago) as created_at,
           m.at - make_interval(secs => g.ago - g.waited) as claimed_at,
           m.at - make_interval(secs => g.ago - g.waited - g.ran) as finished_at
      from given g join submitted s on s.id = g.id cross join moment m
), failed as (
    insert into laneway.attempts (seq, attempt, outcome, lane, worker_id, claimed_at, started_at, finished_at, error)
    select e.seq, a.attempt, 'failed', e.lane, %(worker)s::uuid, t.at, t.at, t.at + interval '0.4 seconds',
           e.earlier
      from ended e cross join lateral generate_series(1, e.attempts - 1) as a (attempt)
     cross join lateral (select e.claimed_at - make_interval(secs => 3 * (e.attempts - a.attempt))) as t (at)
), logged as (
    insert into laneway.logs (seq, attempt, line, at, level, message)
    select e.seq, e.attempts, 1, e.claimed_at, 'info', e.log from ended e where e.log is not null
), slots as (
    insert into laneway.schedule_slots (schedule, slot, outcome, job_id, at)
    select e.schedule, date_trunc('minute', e.created_at), 'submitted', e.id, e.created_at
      from ended e where e.schedule is not null
    on conflict do nothing
)
insert into laneway.outcome (seq, status, workspace, job_type, priority, attempt, retries, lane, worker_id,
                             claimed_at, started_at, finished_at, result, error, error_type, cancel_requested_at, cancel_by,
                             cancel_reason)
select e.seq, e.status, 'default', e.job_type, e.priority, e.attempts, e.attempts - 1, e.lane, %(worker)s::uuid,
       e.claimed_at, e.claimed_at, e.finished_at, e.result, e.error, left(e.error ->> 'type', 200),
       case when e.status = 'cancelled' then e.finished_at end, case when e.status = 'cancelled' then 'maya' end,
       case when e.status = 'cancelled' then 'the source was withdrawn' end
  from ended e
