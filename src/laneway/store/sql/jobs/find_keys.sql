-- The live jobs that hold the given unique keys.
select k.workspace, k.job_type, k.unique_key, v.id, v.status
  from unnest(%(workspaces)s::text[], %(job_types)s::text[], %(keys)s::text[]) as g (workspace, job_type, unique_key)
  join laneway.job_keys k using (workspace, job_type, unique_key)
  join laneway.jobs_view v on v.seq = k.seq
