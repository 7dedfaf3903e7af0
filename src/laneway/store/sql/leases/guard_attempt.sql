-- Locks the attempt's lease until the caller's transaction ends, so that it cannot be reclaimed.
select answer, xid from laneway.guard(%(seq)s::bigint, %(attempt)s::integer)
