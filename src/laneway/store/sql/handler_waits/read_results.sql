-- The results of the jobs that a job came after, in the order in which they were given, a page of bounded size.
select id, job_type, name, status, result
  from laneway.results_of(%(seq)s::bigint, %(after)s::integer, %(limit)s::integer, %(bytes)s::integer)
