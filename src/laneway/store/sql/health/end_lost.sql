-- Fails those of the given jobs that have no state, and frees their keys.
select l from laneway.end_lost(0, %(seqs)s::bigint[]) l
