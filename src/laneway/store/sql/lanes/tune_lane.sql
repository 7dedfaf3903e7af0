-- Changes exactly the columns named in `columns`; returns the changed row.
update laneway.worker_lanes l
   set job_types             = case when 'job_types' = any (c.columns) then %(job_types)s::text[] else l.job_types end,
       max_slots             = case when 'max_slots' = any (c.columns) then %(max_slots)s::integer else l.max_slots end,
       poll_interval_ms      = case when 'poll_interval_ms' = any (c.columns)
                                    then %(poll_interval_ms)s::integer else l.poll_interval_ms end,
       stale_timeout_minutes = case when 'stale_timeout_minutes' = any (c.columns)
                                    then %(stale_timeout_minutes)s::integer else l.stale_timeout_minutes end,
       lease_seconds         = case when 'lease_seconds' = any (c.columns)
                                    then %(lease_seconds)s::integer else l.lease_seconds end,
       enabled               = case when 'enabled' = any (c.columns) then %(enabled)s::boolean else l.enabled end,
       updated_by            = c.actor
  from (select %(columns)s::text[] as columns, set_config('laneway.actor', %(by)s::text, true) as actor) c
 where l.name = %(name)s
returning to_jsonb(l)
