-- Counts jobs against what a principal's grants allow, in the transaction that submits them; raises where it is too much.
select laneway.charge(%(principal)s::uuid, %(ids)s::uuid[], null, %(max_queued)s::bigint,
                      %(max_bytes)s::bigint, %(max_types)s::bigint)
