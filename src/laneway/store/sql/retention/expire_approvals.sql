-- Cancels a bounded number of jobs whose approval expired, while this holder is the leader.
select laneway.expire_approvals(%(limit)s::integer, null) where laneway.is_leader(%(holder)s::uuid, %(epoch)s::bigint)
