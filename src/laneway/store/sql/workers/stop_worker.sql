-- Records that a worker process stopped on purpose; deletes its counters if they are zero, and its places in line.
with gone as (
    delete from laneway.slot_counts c using laneway.slots_held u
     where u.worker_id = %(id)s::uuid and u.running = 0
       and c.lane = u.lane and c.worker_id = u.worker_id and c.place = u.place and c.running = 0
), unlimited as (
    delete from laneway.limit_counts c using laneway.limits_held u
     where u.worker_id = %(id)s::uuid and u.running = 0
       and c.limit_name = u.limit_name and c.worker_id = u.worker_id and c.place = u.place and c.running = 0
), waiters as materialized (
    select h.ctid as tid from laneway.limit_waiters h where h.worker_id = %(id)s::uuid for update skip locked
), waited as (
    delete from laneway.limit_waiters h where h.ctid = any (array(select w.tid from waiters w))
)
update laneway.workers set stopped_at = clock_timestamp() where id = %(id)s::uuid
