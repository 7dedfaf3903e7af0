-- Queued: never starts. Running: its worker is asked to stop, no completion is accepted any more. `only` spares one of them.
select c.found_in, c.worker_id, j.workspace
  from laneway.jobs j cross join laneway.cancel(j.seq, %(by)s::text, %(reason)s::text, %(only)s::text) c
 where j.id = %(id)s::uuid
