-- Releases slots, limits and keys of jobs finished in their handler's transaction, while this holder is the leader.
select laneway.fold_finished(%(limit)s::integer) where laneway.leads(%(holder)s::uuid, %(epoch)s::bigint)
