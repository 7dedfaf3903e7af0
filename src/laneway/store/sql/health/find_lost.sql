-- Jobs that are in no state: the newest, and a sample of the others. Whether those are all jobs there are.
select l.id, l.is_whole from laneway.sample_lost(%(newest)s::integer, %(places)s::integer, %(each)s::integer) l
