-- Changes queued jobs only; returns the state that it found.
select r.found_in
  from laneway.jobs j cross join laneway.reprioritize(j.seq, %(priority)s::integer) r where j.id = %(id)s::uuid
