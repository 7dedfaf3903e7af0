-- A queued job never starts; a running one is asked to stop, and can no longer complete. `only` skips one of the two.
select c.found_in, c.worker_id, j.workspace
  from laneway.jobs j cross join laneway.cancel(j.seq, %(by)s::text, %(reason)s::text, %(only)s::text) c
 where j.id = %(id)s::uuid
