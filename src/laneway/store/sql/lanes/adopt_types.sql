-- Creates missing lanes and puts job types that are in no lane into the one named; rows that have one already win.
select laneway.adopt_types(%(lanes)s::text[], %(job_types)s::text[], %(max_slots)s::integer, %(poll_interval_ms)s::integer,
                           %(stale_timeout_minutes)s::integer, %(lease_seconds)s::integer, %(by)s::text)
