-- Logs that jobs changed, if somebody watches them, in the transaction of the change.
select laneway.emit(%(seqs)s::bigint[], %(change)s::text)
