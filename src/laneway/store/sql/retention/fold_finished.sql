-- Gives back what jobs held that ended in their handler's transaction, while this holder leads.
select laneway.fold_finished(%(limit)s::integer) where laneway.leads(%(holder)s::uuid, %(epoch)s::bigint)
