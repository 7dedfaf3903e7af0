create or replace view laneway.jobs_view as
select j.seq, j.id, j.job_type,
       coalesce(l.lane, o.lane, laneway.lane_of(j.job_type)) as lane,
       case when o.seq is not null then o.status
            when l.seq is not null then 'running'
            when w.seq is not null or d.seq is not null then 'approved' end as status,
       coalesce(o.priority, -l.rank, -w.rank, -d.rank, j.priority) as priority,
       j.payload, o.result, o.error,
       case when p.seq is not null then jsonb_build_object(
            'stage', p.stage, 'done', p.done, 'total', p.total,
            'percent', round((100 * p.done / nullif(p.total, 0))::numeric, 1), 'message', p.message) end as progress,
       p.checkpoint, null::jsonb as analysis,
       coalesce(o.attempt, l.attempt, w.attempt, d.attempt, 0) as attempt,
       coalesce(o.retries, l.retries, w.retries, d.retries, 0) as retries,
       j.max_retries, j.workspace, coalesce(j.tags, '{}') as tags, j.unique_key, j.created_at, j.created_by,
       j.created_at as approved_at, null::text as approved_by, null::timestamptz as expires_at,
       coalesce(d.run_at, j.run_at, j.created_at) as run_at,
       coalesce(l.worker_id, o.worker_id) as claimed_by, k.name as worker,
       coalesce(l.claimed_at, o.claimed_at) as claimed_at, l.lease_until,
       coalesce(l.last_progress_at, p.at) as last_progress_at,
       coalesce(l.cancel_requested_at, o.cancel_requested_at) as cancel_requested_at,
       coalesce(l.cancel_by, o.cancel_by) as cancel_by, coalesce(l.cancel_reason, o.cancel_reason) as cancel_reason,
       coalesce(l.started_at, o.started_at) as started_at, o.finished_at
  from laneway.jobs j
  left join laneway.outcome o on o.seq = j.seq
  left join laneway.lease l on l.seq = j.seq
  left join laneway.ready w on w.seq = j.seq
  left join laneway.delayed d on d.seq = j.seq
  left join laneway.progress p on p.seq = j.seq
  left join laneway.workers k on k.id = coalesce(l.worker_id, o.worker_id);

-- The same with its JSON as text, for readers that a payload written behind our back must not stop.
create or replace view laneway.jobs_as_text as
select seq, id, job_type, lane, status, priority, payload::text as payload, result::text as result,
       error::text as error, progress::text as progress, checkpoint::text as checkpoint, analysis::text as analysis,
       attempt, retries, max_retries, workspace, tags, unique_key, created_at, created_by, approved_at, approved_by,
       expires_at, run_at, claimed_by, worker, claimed_at, lease_until, last_progress_at, cancel_requested_at,
       cancel_by, cancel_reason, started_at, finished_at
  from laneway.jobs_view;
