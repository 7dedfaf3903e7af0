-- Adds tallies to the sums of their flows, only for the leader.
select laneway.fold_tallies(%(limit)s::integer) where laneway.is_leader(%(holder)s::uuid, %(epoch)s::bigint)
