-- Refuses jobs that are too many for a principal before they are stored; a job whose unique_key is held will be no new one.
select laneway.check_queue(
    %(principal)s::uuid,
    (select count(*) from unnest(%(workspaces)s::text[], %(job_types)s::text[], %(keys)s::text[]) n (workspace, job_type, key)
      where not exists (select from laneway.job_keys k
                         where k.workspace = n.workspace and k.job_type = n.job_type and k.unique_key = n.key)),
    %(bytes)s::bigint, %(job_types)s::text[], %(max_queued)s::bigint, %(max_bytes)s::bigint, %(max_types)s::bigint)
