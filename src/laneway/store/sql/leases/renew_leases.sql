-- Renews each lease only for the attempt that runs; never waits for a lock while holding one.
select seq, attempt, answer from laneway.heartbeat(%(seqs)s::bigint[], %(attempts)s::integer[])
