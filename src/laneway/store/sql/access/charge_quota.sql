-- Counts jobs against a principal's quota in the transaction that submits them; raises if they exceed it.
select laneway.charge_quota(%(principal)s::uuid, %(ids)s::uuid[], null, %(max_queued)s::bigint,
                            %(max_bytes)s::bigint, %(max_types)s::bigint)
