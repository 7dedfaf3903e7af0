-- Ends those of the given jobs that are in no state as failed, and frees their keys.
select l from laneway.end_lost(0, %(seqs)s::bigint[]) l
