-- Jobs that are in no state, up to a bound: reads all jobs, so it is for people who ask.
select l.id from laneway.lost_jobs(0, %(limit)s::integer) l
