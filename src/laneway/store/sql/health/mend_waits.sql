-- Corrects waiting jobs that nothing would release; needs no leadership.
select m.mended, m.after, m.job_types from laneway.mend_waits(%(after)s::bigint, %(look)s::integer) m
