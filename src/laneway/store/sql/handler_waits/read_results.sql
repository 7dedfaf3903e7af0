-- The results of the jobs that a job came after, in the order in which they were given.
select id, job_type, name, status, result::text
  from laneway.results_of(%(seq)s::bigint, %(after)s::integer, %(limit)s::integer)
