-- Continuing from the returned snapshot reads each event exactly once, however late it became visible.
-- The first row identifies the log, and is read last: from then on its table cannot be replaced.
select next::text, case when next is not null then laneway.log_identity() end, id, seq, name, workspace, lane, job_type, created_by, state::text
  from laneway.events_between(%(prev)s::pg_snapshot, %(next)s::pg_snapshot, %(after)s::bigint, %(limit)s::integer)
