-- Each event is read exactly once by who goes on from the snapshot answered, however late it became visible.
-- The first row says which log it was read from, after the read: its table cannot be replaced from then on.
select next::text, case when next is not null then laneway.log_identity() end, id, seq, name, workspace, lane, job_type, created_by, state::text
  from laneway.events_between(%(prev)s::pg_snapshot, %(next)s::pg_snapshot, %(after)s::bigint, %(limit)s::integer)
