-- Jobs by sequence number without payloads, results and checkpoints, for lists.
select t.seq, t.id, t.job_type, t.lane, t.status, t.priority, null as payload, null as result,
       t.error, t.progress, null as checkpoint, t.analysis, t.attempt, t.retries,
       t.max_retries, t.workspace, t.tags, t.unique_key, t.concurrency_key, t.created_at,
       t.created_by, t.approved_at, t.approved_by, t.expires_at, t.run_at, t.claimed_by,
       t.worker, t.claimed_at, t.lease_until, t.last_progress_at, t.cancel_requested_at,
       t.cancel_by, t.cancel_reason, t.started_at, t.finished_at, t.flow, t.waits_for
  from unnest(%(seqs)s::bigint[]) s (seq)
 cross join lateral (select t.* from laneway.jobs_as_read t where t.seq = s.seq offset 0) t
