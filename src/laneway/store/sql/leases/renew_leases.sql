-- Renews each lease only for the running attempt; never waits for a lock while holding one.
select seq, attempt, answer from laneway.heartbeat(%(seqs)s::bigint[], %(attempts)s::integer[])
