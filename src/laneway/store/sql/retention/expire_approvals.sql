-- Cancels jobs whose approval did not come in time, a bounded number, while this holder leads.
select laneway.expire_approvals(%(limit)s::integer, null) where laneway.leads(%(holder)s::uuid, %(epoch)s::bigint)
