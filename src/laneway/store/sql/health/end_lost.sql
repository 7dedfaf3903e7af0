-- Ends jobs that are in no state as failed, a bounded number, and frees their keys.
select l from laneway.end_lost(%(limit)s::integer) l
