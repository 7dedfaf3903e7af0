-- The lanes and their control version, in one snapshot.
select c.version, c.paused, to_jsonb(l)
  from laneway.control c cross join laneway.worker_lanes l
 order by l.name
