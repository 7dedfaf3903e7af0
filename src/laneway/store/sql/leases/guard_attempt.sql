-- Holds the attempt's lease until the caller's transaction ends: until then nobody takes it back.
select answer, xid from laneway.guard(%(seq)s::bigint, %(attempt)s::integer)
