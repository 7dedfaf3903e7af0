-- Records that the worker process is live, not its jobs; returns whether it is drained.
update laneway.workers
   set seen_at = clock_timestamp(), stopped_at = null, memory_bytes = %(memory_bytes)s::bigint,
       room = coalesce(%(room)s::jsonb, room)
 where id = %(worker)s::uuid
returning drain_requested_at is not null as is_drained
