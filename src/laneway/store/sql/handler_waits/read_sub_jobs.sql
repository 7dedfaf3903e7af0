-- The results of the sub-jobs of a wait, in the order in which the handler gave them, a page of bounded size.
select id, job_type, name, status, result
  from laneway.sub_job_results(%(seq)s::bigint, %(name)s::text, %(after)s::integer, %(limit)s::integer,
                               %(bytes)s::integer)
