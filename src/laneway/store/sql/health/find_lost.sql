-- Jobs without a state among the newest and a sample of the others, and whether these are all jobs.
select l.id, l.is_whole from laneway.sample_lost(%(newest)s::integer, %(places)s::integer, %(each)s::integer) l
