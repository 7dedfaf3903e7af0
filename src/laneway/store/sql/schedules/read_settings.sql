-- The settings of the named schedules, to compare with those in code.
select name, job_type, cron, timezone, missed, catch_up, check_name, priority, max_retries, concurrency_key, workspace, tags,
       payload::text
  from laneway.schedules where name = any (%(names)s::text[])
