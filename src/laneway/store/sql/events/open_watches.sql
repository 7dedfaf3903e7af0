-- After its commit every change of these jobs is logged, except by transactions that had already checked.
select seq, settled from laneway.open_watches(%(seqs)s::bigint[], %(keep_s)s::double precision)
