-- Deletes a bounded number of old records of schedules, control changes, sessions and requests, as the leader.
select laneway.prune_records(%(holder)s::uuid, %(epoch)s::bigint, %(limit)s::integer)
