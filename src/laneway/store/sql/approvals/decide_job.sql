-- Approves or rejects one job that awaits it, once; returns the state that it found.
select d.found_in, d.refusal, d.job_type, j.workspace
  from laneway.jobs j
 cross join laneway.decide(j.seq, %(approve)s::boolean, %(by)s::text, %(comment)s::text, %(seal)s::text) d
 where j.id = %(id)s::uuid
