-- From its commit on every change of these is logged, but by transactions that looked before.
select seq, settled from laneway.open_watches(%(seqs)s::bigint[], %(keep_s)s::double precision)
