-- Releases slots, limits and keys of jobs finished in their handler's transaction, while this holder is the leader.
select laneway.release_self_finished(%(limit)s::integer) where laneway.is_leader(%(holder)s::uuid, %(epoch)s::bigint)
