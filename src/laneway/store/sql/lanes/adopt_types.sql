-- Creates missing lanes and adds job types that are in no lane to the named one; existing assignments win.
select laneway.adopt_types(%(lanes)s::text[], %(job_types)s::text[], %(max_slots)s::integer, %(poll_interval_ms)s::integer,
                           %(stale_timeout_minutes)s::integer, %(lease_seconds)s::integer, %(by)s::text)
