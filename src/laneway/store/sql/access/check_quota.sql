-- Refuses jobs beyond a principal's quota before they are stored.
-- A job whose unique_key is held, also by another job of the same batch, is a duplicate and does not count. Nor does one
-- that is unique by its period or arguments: only the submit tells, and charge_quota counts it.
select laneway.check_quota(
    %(principal)s::uuid, g.jobs, 0::bigint, %(job_types)s::text[], %(max_queued)s::bigint, %(max_bytes)s::bigint,
    %(max_types)s::bigint)
  from (select count(*) filter (where n.key is null)
               + count(distinct (n.workspace, n.job_type, n.key)) filter (where n.key is not null) as jobs
          from unnest(%(workspaces)s::text[], %(job_types)s::text[], %(keys)s::text[], %(maybe)s::boolean[])
               n (workspace, job_type, key, maybe)
         where not n.maybe
           and not exists (select from laneway.job_types t where t.name = n.job_type
                              and (t.unique_for_s is not null or t.unique_by is not null))
           and not exists (select from laneway.job_keys k
                            where k.workspace = n.workspace and k.job_type = n.job_type and k.unique_key = n.key)) g
