-- The waits that the handlers of these jobs asked for in their earlier runs, in order.
select seq, name, kind, event, key, total, stored, state, result from laneway.stored_waits(%(seqs)s::bigint[])
