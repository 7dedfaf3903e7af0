-- Sends several events, all or none.
select id, delivered, job_types from laneway.send_events(%(events)s::text::jsonb)
