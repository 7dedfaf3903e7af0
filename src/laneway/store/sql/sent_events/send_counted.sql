-- Stores an event of a principal whose events are counted, and delivers it; raises if they exceed its quota.
select id, delivered, job_types
  from laneway.send_counted_event(%(account)s::uuid, %(max_queued)s::bigint, %(max_bytes)s::bigint, %(name)s::text,
                                  %(key)s::text, %(payload)s::text::jsonb, %(workspace)s::text, %(sent_by)s::text,
                                  make_interval(secs => %(retention)s::double precision))
