-- One run; interrupted when its server has not reported for a minute.
select id, principal_id, ordered_by, verb,
       case when state = 'running' and updated_at < clock_timestamp() - interval '1 minute' then 'interrupted'
            else state end,
       done, refused::text, started_at, updated_at
  from laneway.bulk_runs
 where id = %(id)s::uuid
