-- Corrects counters of slots and limits that differ from the leases, while this holder is the leader.
select laneway.recount() where laneway.is_leader(%(holder)s::uuid, %(epoch)s::bigint)
