-- Flows that match, newest first, one page by seq; a last row without an id tells where an unfinished search stopped.
select seq, id, name, workspace, tags, status, created_at, created_by, ended_at, jobs, completed, failed, cancelled
  from laneway.list_flows(%(before)s::bigint, %(limit)s::integer, %(id)s::uuid, %(workspace)s::text, %(name)s::text,
                          %(status)s::text, %(tag)s::text, %(within)s::jsonb)
