-- Forgets old records of schedules, control changes, sessions and requests, a bounded number, while this holder leads.
select laneway.prune_records(%(holder)s::uuid, %(epoch)s::bigint, %(limit)s::integer)
