-- Submits like submit_job, and leaves the message that wakes its workers in a setting of the session.
-- For wake_noted, in the next transaction; not behind a pooler.
select job_id, status, duplicate,
       set_config('laneway.wake', case when duplicate then '' when status = 'approved' then %(wake_ready)s::text
                                       when status = 'pending' then %(wake_pending)s::text else '' end, false)
  from laneway.submit(job_type => %(job_type)s::text, payload => %(payload)s::jsonb,
                      priority => %(priority)s::integer, run_at => %(run_at)s::timestamptz,
                      delay => make_interval(secs => %(delay)s::double precision),
                      unique_key => %(unique_key)s::text, workspace => %(workspace)s::text,
                      tags => %(tags)s::text[], max_retries => %(max_retries)s::integer,
                      created_by => %(created_by)s::text, wake => %(wake)s::boolean, id => %(id)s::uuid,
                      traceparent => %(traceparent)s::text, concurrency_key => %(concurrency_key)s::text,
                      needs => %(needs)s::text, max_age => %(max_age)s::double precision,
                      unique_for => make_interval(secs => %(unique_for)s::double precision), unique_by => %(unique_by)s::text[],
                      after => %(after)s::uuid[], after_failure => %(after_failure)s::text,
                      max_payload_bytes => 2147483647, max_key_bytes => 2147483647)
