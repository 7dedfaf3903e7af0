-- Each event is read exactly once by who goes on from the snapshot answered, however late it became visible.
select next::text, id, seq, name, workspace, lane, job_type, created_by, state::text
  from laneway.events_between(%(prev)s::pg_snapshot, %(next)s::pg_snapshot, %(after)s::bigint, %(limit)s::integer)
