-- Submits one job in the transaction of the connection; a key that is taken returns its first job.
-- The caller has checked sizes against its settings.
select job_id, status, duplicate
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
