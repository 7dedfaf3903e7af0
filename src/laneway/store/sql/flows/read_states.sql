-- Jobs of a flow with their states and edges, in the order submitted, one page by seq; never payloads or results.
select seq, id, name, job_type, status, priority, attempt, parents, after_failure, owner, created_at, started_at, finished_at,
       error_type, is_cut
  from laneway.flow_states(%(id)s::uuid, %(after)s::bigint, %(limit)s::integer)
