-- The webhooks by name, or one; never a secret.
select name, url, events, job_types, workspaces, lanes, tags, enabled, timeout_s, max_retries,
       case when previous_until > clock_timestamp() then previous_until end, created_at, created_by, updated_at, updated_by
  from laneway.webhooks
 where %(name)s::text is null or name = %(name)s::text
 order by name
