-- Changes exactly the columns named in `columns`; returns whether the schedule exists.
update laneway.schedules s
   set job_type        = case when 'job_type' = any (c.columns) then %(job_type)s::text else s.job_type end,
       payload         = case when 'payload' = any (c.columns) then %(payload)s::jsonb else s.payload end,
       cron            = case when 'cron' = any (c.columns) then %(cron)s::text else s.cron end,
       timezone        = case when 'timezone' = any (c.columns) then %(timezone)s::text else s.timezone end,
       missed          = case when 'missed' = any (c.columns) then %(missed)s::text else s.missed end,
       catch_up        = case when 'catch_up' = any (c.columns) then %(catch_up)s::integer else s.catch_up end,
       check_name      = case when 'check_name' = any (c.columns) then %(check_name)s::text else s.check_name end,
       priority        = case when 'priority' = any (c.columns) then %(priority)s::integer else s.priority end,
       max_retries     = case when 'max_retries' = any (c.columns) then %(max_retries)s::integer else s.max_retries end,
       concurrency_key = case when 'concurrency_key' = any (c.columns)
                              then %(concurrency_key)s::text else s.concurrency_key end,
       workspace       = case when 'workspace' = any (c.columns) then %(workspace)s::text else s.workspace end,
       tags            = case when 'tags' = any (c.columns) then %(tags)s::text[] else s.tags end,
       enabled         = case when 'enabled' = any (c.columns) then %(enabled)s::boolean else s.enabled end,
       updated_by      = c.actor
  from (select %(columns)s::text[] as columns, set_config('laneway.actor', %(by)s::text, true) as actor,
               set_config('laneway.payload_checked', 'on', true) as checked) c
 where s.name = %(name)s and c.checked = 'on'
returning true
