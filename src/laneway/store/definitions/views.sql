create or replace view laneway.jobs_view as
select j.seq, j.id, j.job_type,
       -- An analysis runs in a separate lane; its job keeps the lane it will run in.
       coalesce(case when l.job_type not like E'\x01%' then l.lane end, nullif(o.lane, 'analysis'),
                laneway.lane_of(j.job_type)) as lane,
       case when o.seq is not null then o.status
            when coalesce(l.job_type, w.job_type, d.job_type) like E'\x01%' then 'pending'
            when l.seq is not null then 'running'
            when coalesce(w.seq, d.seq, b.seq) is not null then 'approved'
            when a.seq is not null then 'awaiting_approval'
            when q.seq is not null then 'waiting'
            -- Without a state: some of the tables were truncated or restored.
            else 'failed' end as status,
       coalesce(o.priority, -l.rank, -w.rank, -d.rank, -b.rank, -a.rank, -q.rank, j.priority) as priority,
       j.payload, o.result,
       case when coalesce(o.seq, l.seq, w.seq, d.seq, b.seq, a.seq, q.seq) is null then
            '{"type": "Lost", "message": "the database lost the state of this job: `laneway db repair`, then retry it", "public": true}'::jsonb
            else o.error end as error,
       case when p.seq is not null then jsonb_build_object(
            'stage', p.stage, 'done', p.done, 'total', p.total,
            'percent', round((100 * p.done / nullif(p.total, 0))::numeric, 1), 'message', p.message) end as progress,
       p.checkpoint, v.analysis,
       coalesce(o.attempt, l.attempt, w.attempt, d.attempt, b.attempt, a.attempt, q.attempt, 0) as attempt,
       coalesce(o.retries, l.retries, w.retries, d.retries, b.retries, q.retries, 0) as retries,
       j.max_retries, j.workspace, coalesce(j.tags, '{}') as tags, j.unique_key, j.concurrency_key,
       j.created_at, j.created_by,
       case when v.decision in ('approved', 'automatic') then v.decided_at
            when v.decision is not null or a.seq is not null
                 or coalesce(l.job_type, w.job_type, d.job_type) like E'\x01%' then null
            -- Ended before it ran: it counts as approved if its type needs neither analysis nor approval.
            when o.seq is not null and coalesce(o.lane, 'analysis') = 'analysis'
                 and (v.seq is not null or exists (select from laneway.job_types t where t.name = j.job_type
                                                      and (t.has_analysis or t.approval <> 'never'))) then null
            else coalesce(v.analyzed_at, j.created_at) end as approved_at,
       case when v.decision in ('approved', 'automatic') then v.decided_by end as approved_by, a.expires_at,
       -- Drivers do not support every date of PostgreSQL.
       greatest(least(coalesce(d.run_at, j.run_at, j.created_at), '9999-12-31 00:00:00+00'), '0001-01-02 00:00:00+00') as run_at,
       coalesce(l.worker_id, o.worker_id) as claimed_by, k.name as worker,
       coalesce(l.claimed_at, o.claimed_at) as claimed_at, l.lease_until,
       coalesce(l.last_progress_at, p.at) as last_progress_at,
       coalesce(l.cancel_requested_at, o.cancel_requested_at) as cancel_requested_at,
       coalesce(l.cancel_by, o.cancel_by) as cancel_by, coalesce(l.cancel_reason, o.cancel_reason) as cancel_reason,
       -- For a running attempt only its worker knows better, and reports it at the end; an analysis does not count.
       coalesce(l.started_at, case when l.job_type not like E'\x01%' then l.claimed_at end, o.started_at) as started_at,
       o.finished_at,
       coalesce(l.cancel_by, o.cancel_by) as cancelled_by, f.id as flow,
       case when q.seq is not null then jsonb_build_object(
            'kind', q.reason, 'name', q.name, 'since', q.since, 'until', q.wake_at, 'event', h.event, 'key', h.key,
            'missing', (select c.missing from laneway.countdowns c where c.seq = j.seq),
            'jobs', (select jsonb_agg(e.id order by e.parent)
                       from (select x.parent, y.id from laneway.open_edges x join laneway.jobs y on y.seq = x.parent
                              where x.child = j.seq order by x.parent limit 20) e)) end as waits_for
  from laneway.jobs j
  left join laneway.outcome o on o.seq = j.seq
  left join laneway.lease l on l.seq = j.seq
  left join laneway.ready w on w.seq = j.seq
  left join laneway.delayed d on d.seq = j.seq
  left join laneway.key_waiters b on b.seq = j.seq
  left join laneway.awaiting a on a.seq = j.seq
  left join laneway.waiting q on q.seq = j.seq
  left join laneway.handler_waits h on h.seq = q.seq and h.name = q.name
  left join laneway.flows f on f.seq = j.flow
  left join laneway.approvals v on v.seq = j.seq
  left join laneway.progress p on p.seq = j.seq
  left join laneway.workers k on k.id = coalesce(l.worker_id, o.worker_id)
 -- The view has its owner's rights and bypasses row-level security, so it applies the policy of `laneway db grants`.
 where (select not row_security_active('laneway.jobs') or coalesce(current_setting('laneway.workspaces', true), '') = '')
    or j.workspace = any ((select nullif(current_setting('laneway.workspaces', true), '')::text[])::text[]);

-- The same with JSON as text, for readers that must not fail on a payload written by SQL. Landed code that reads it does
-- not know the status `waiting`, and would fail a whole list because of one such job.
create or replace view laneway.jobs_as_text as
select seq, id, job_type, lane, case status when 'waiting' then 'approved' else status end as status, priority, payload::text as payload, result::text as result,
       error::text as error, progress::text as progress, checkpoint::text as checkpoint, analysis::text as analysis,
       attempt, retries, max_retries, workspace, tags, unique_key, concurrency_key, created_at, created_by, approved_at, approved_by,
       expires_at, run_at, claimed_by, worker, claimed_at, lease_until, last_progress_at, cancel_requested_at,
       cancel_by, cancel_reason, started_at, finished_at
  from laneway.jobs_view;

-- Jobs by id, in the order given; planned once, because planning takes longer than reading, and by index, because
-- the tables grow after the plan is made.
create or replace function laneway.jobs_by_id(p_ids uuid[])
returns setof laneway.jobs_as_text
language plpgsql stable rows 10
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
    return query
    select v.* from unnest(p_ids) with ordinality as u (id, n)
     cross join lateral (
        select * from laneway.jobs_as_text t
         where t.seq = (select j.seq from laneway.jobs j where j.id = u.id) offset 0) v
     order by u.n;
end $$;

-- jobs_as_text with the columns that came later: landed code reads jobs_as_text by position.
create or replace view laneway.jobs_as_read as
select seq, id, job_type, lane, status, priority, payload::text as payload, result::text as result,
       error::text as error, progress::text as progress, checkpoint::text as checkpoint, analysis::text as analysis,
       attempt, retries, max_retries, workspace, tags, unique_key, concurrency_key, created_at, created_by, approved_at, approved_by,
       expires_at, run_at, claimed_by, worker, claimed_at, lease_until, last_progress_at, cancel_requested_at,
       cancel_by, cancel_reason, started_at, finished_at, flow, waits_for::text as waits_for
  from laneway.jobs_view;
