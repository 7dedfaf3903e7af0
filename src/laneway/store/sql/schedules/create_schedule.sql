-- Creates a schedule if there is none of that name; never overwrites one. Answers whether it did.
insert into laneway.schedules (name, job_type, payload, cron, timezone, missed, catch_up, check_name, priority,
                               max_retries, concurrency_key, workspace, tags, enabled, updated_by)
values (%(name)s, %(job_type)s, %(payload)s::jsonb, %(cron)s, %(timezone)s, %(missed)s, %(catch_up)s::integer,
        %(check_name)s::text, %(priority)s::integer, %(max_retries)s::integer, %(concurrency_key)s::text,
        %(workspace)s, %(tags)s::text[], %(enabled)s::boolean, %(by)s)
on conflict (name) do nothing
returning true
