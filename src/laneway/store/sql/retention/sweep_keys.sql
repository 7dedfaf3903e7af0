-- Repairs keys without a valid holder or successor, while this holder is the leader.
select laneway.sweep_keys() where laneway.is_leader(%(holder)s::uuid, %(epoch)s::bigint)
