-- Puts a job type that is in no lane into the one named; a row that has it already wins.
select laneway.adopt_type(%(lane)s::text, %(job_type)s::text, %(by)s::text)
