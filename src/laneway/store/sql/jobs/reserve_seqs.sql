-- Job numbers in submit order; a number not used is a gap and harmless.
select nextval('laneway.jobs_seq_seq') from generate_series(1, %(count)s::integer)
