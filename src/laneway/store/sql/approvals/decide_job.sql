-- Approves or rejects one job that waits for it, once: the state met is the answer.
select d.found_in, d.refusal, d.job_type, j.workspace
  from laneway.jobs j
 cross join laneway.decide(j.seq, %(approve)s::boolean, %(by)s::text, %(comment)s::text, %(seal)s::text) d
 where j.id = %(id)s::uuid
