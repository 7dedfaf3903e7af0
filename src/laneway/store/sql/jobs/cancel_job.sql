-- Queued: never starts. Running: its worker is asked to stop and no completion is accepted any more.
select c.found_in, c.worker_id, j.workspace
  from laneway.jobs j cross join laneway.cancel(j.seq, %(by)s::text, %(reason)s::text) c where j.id = %(id)s::uuid
