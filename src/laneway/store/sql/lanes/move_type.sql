-- Moves a job type from its lane to the named one, in one change.
update laneway.worker_lanes l
   set job_types = case when l.name = %(lane)s then array_remove(l.job_types, %(job_type)s) || %(job_type)s::text
                        else array_remove(l.job_types, %(job_type)s) end,
       updated_by = said.actor
  from (select set_config('laneway.actor', %(by)s::text, true) as actor) said
 where (l.name = %(lane)s and l.name <> 'default') or %(job_type)s = any (l.job_types)
returning l.name
