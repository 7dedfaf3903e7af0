-- Retries failed and cancelled jobs only; returns the state that it found.
select r.found_in, r.wakes
  from laneway.jobs j cross join laneway.retry(j.seq) r where j.id = %(id)s::uuid
