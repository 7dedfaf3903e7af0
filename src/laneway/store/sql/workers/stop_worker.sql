-- The worker process ended on purpose; drops its counters when they are empty.
with gone as (
    delete from laneway.slot_usage where worker_id = %(id)s::uuid and running = 0
), unlimited as (
    delete from laneway.limit_usage where worker_id = %(id)s::uuid and running = 0
)
update laneway.workers set stopped_at = clock_timestamp() where id = %(id)s::uuid
