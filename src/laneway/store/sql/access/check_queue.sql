-- Refuses jobs that are too many for a principal before they are stored; a job whose unique_key is held will be no new one.
select laneway.check_queue(
    %(principal)s::uuid, g.jobs, g.bytes, %(job_types)s::text[], %(max_queued)s::bigint, %(max_bytes)s::bigint,
    %(max_types)s::bigint)
  from (select count(*) as jobs, coalesce(sum(n.bytes), 0)::bigint as bytes
          from unnest(%(workspaces)s::text[], %(job_types)s::text[], %(keys)s::text[], %(bytes)s::bigint[])
               n (workspace, job_type, key, bytes)
         where not exists (select from laneway.job_keys k
                            where k.workspace = n.workspace and k.job_type = n.job_type and k.unique_key = n.key)) g
