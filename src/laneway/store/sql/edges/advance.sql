-- Does a bounded part of the work that ends of jobs have left; waits for no lock.
select done, more, is_busy, job_types from laneway.advance(%(limit)s::integer)
