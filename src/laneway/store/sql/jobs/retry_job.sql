-- Failed and cancelled jobs only; the state met is the answer.
select r.found_in, r.wakes
  from laneway.jobs j cross join laneway.retry(j.seq) r where j.id = %(id)s::uuid
