-- The worker process lives; says nothing about its jobs.
update laneway.workers set seen_at = clock_timestamp(), stopped_at = null where id = %(id)s::uuid
