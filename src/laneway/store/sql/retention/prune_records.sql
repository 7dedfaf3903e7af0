-- Forgets old slots of schedules and old control changes, a bounded number, while this holder leads.
select laneway.prune_records(%(holder)s::uuid, %(epoch)s::bigint, %(limit)s::integer)
