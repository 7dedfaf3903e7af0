-- The lanes and their control version, in one snapshot, and whether workers deliver to webhooks.
select c.version, c.paused, to_jsonb(l), c.has_webhooks
  from laneway.control c cross join laneway.worker_lanes l
 order by l.name
