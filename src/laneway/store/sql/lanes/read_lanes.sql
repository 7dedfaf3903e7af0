-- The lanes and their control version, in one snapshot.
select c.version, c.paused, l.name, l.job_types, l.max_slots, l.poll_interval_ms, l.stale_timeout_minutes,
       l.lease_seconds, l.enabled, l.updated_at, l.updated_by
  from laneway.control c cross join laneway.worker_lanes l
 order by l.name
