-- Creates a lane unless the name is taken; never overwrites one. Returns whether it did.
insert into laneway.worker_lanes (name, job_types, max_slots, poll_interval_ms, stale_timeout_minutes,
                                  lease_seconds, enabled, updated_by)
values (%(name)s, %(job_types)s::text[], %(max_slots)s::integer, %(poll_interval_ms)s::integer,
        %(stale_timeout_minutes)s::integer, %(lease_seconds)s::integer, %(enabled)s::boolean, %(by)s)
on conflict (name) do nothing
returning true
