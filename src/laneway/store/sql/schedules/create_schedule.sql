-- Creates a schedule unless the name is taken; never overwrites one. Returns whether it did.
insert into laneway.schedules (name, job_type, payload, cron, timezone, missed, catch_up, check_name, priority,
                               max_retries, concurrency_key, workspace, tags, enabled, updated_by)
select %(name)s::text, %(job_type)s::text, %(payload)s::jsonb, %(cron)s::text, %(timezone)s::text, %(missed)s::text,
       %(catch_up)s::integer, %(check_name)s::text, %(priority)s::integer, %(max_retries)s::integer,
       %(concurrency_key)s::text, %(workspace)s::text, %(tags)s::text[], %(enabled)s::boolean, %(by)s::text
  from (select set_config('laneway.payload_checked', 'on', true) offset 0) c
on conflict (name) do nothing
returning true
