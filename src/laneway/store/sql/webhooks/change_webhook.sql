-- Changes exactly the columns named in `columns`. The secret before a change signs too for a while. Returns whether it did.
update laneway.webhooks w
   set url             = case when 'url' = any (c.columns) then %(url)s::text else w.url end,
       events          = case when 'events' = any (c.columns) then %(events)s::text[] else w.events end,
       job_types       = case when 'job_types' = any (c.columns) then %(job_types)s::text[] else w.job_types end,
       workspaces      = case when 'workspaces' = any (c.columns) then %(workspaces)s::text[] else w.workspaces end,
       lanes           = case when 'lanes' = any (c.columns) then %(lanes)s::text[] else w.lanes end,
       tags            = case when 'tags' = any (c.columns) then %(tags)s::text[] else w.tags end,
       enabled         = case when 'enabled' = any (c.columns) then %(enabled)s::boolean else w.enabled end,
       timeout_s       = case when 'timeout_s' = any (c.columns) then %(timeout_s)s::integer else w.timeout_s end,
       max_retries     = case when 'max_retries' = any (c.columns) then %(max_retries)s::integer else w.max_retries end,
       secret          = case when c.is_new_secret then %(secret)s::text else w.secret end,
       previous_secret = case when c.is_new_secret then w.secret else w.previous_secret end,
       previous_until  = case when c.is_new_secret then clock_timestamp() + make_interval(secs => %(old_secret_s)s::integer)
                              else w.previous_until end,
       updated_at      = clock_timestamp(),
       updated_by      = %(by)s::text
  from (select %(columns)s::text[] as columns, 'secret' = any (%(columns)s::text[]) as is_new_secret) c
 where w.name = %(name)s::text
returning true
