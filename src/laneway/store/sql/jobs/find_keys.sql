-- The live jobs that hold the given unique keys.
select k.workspace, k.job_type, k.unique_key, v.id, v.status
  from unnest(%(workspaces)s::text[], %(job_types)s::text[], %(keys)s::text[]) as g (workspace, job_type, unique_key)
 cross join lateral (select h.* from laneway.job_keys h
                      where h.workspace = g.workspace and h.job_type = g.job_type
                        and h.unique_key = g.unique_key offset 0) k
 cross join lateral (select h.id, h.status from laneway.jobs_view h where h.seq = k.seq offset 0) v
