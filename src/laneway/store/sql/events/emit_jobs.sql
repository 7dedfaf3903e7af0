-- Logs changes of watched jobs in the transaction of the change.
select laneway.emit(%(seqs)s::bigint[], %(change)s::text)
