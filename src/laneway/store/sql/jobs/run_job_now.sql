-- Makes jobs due that wait for a time; returns the state that it found, the type to wake, and both times.
select r.found_in, r.wakes, r.was_due, r.due
  from laneway.jobs j cross join laneway.run_now(j.seq) r where j.id = %(id)s::uuid
