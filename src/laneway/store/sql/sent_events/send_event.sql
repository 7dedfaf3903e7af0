-- Stores an event and lets the jobs go on that wait for it, in one transaction.
select id, delivered, job_types
  from laneway.send_event(%(name)s::text, %(key)s::text, %(payload)s::text::jsonb, %(workspace)s::text,
                          %(sent_by)s::text, %(wake)s::boolean, make_interval(secs => %(retention)s::double precision),
                          max_payload_bytes => 2147483647)
