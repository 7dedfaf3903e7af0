-- Adds a job type to a lane unless it is in a lane already.
select laneway.adopt_type(%(lane)s::text, %(job_type)s::text, %(by)s::text)
