-- Records that remote workers stopped, only if the named stream is their newest.
with gone as (
    update laneway.workers w set stopped_at = clock_timestamp()
      from unnest(%(ids)s::uuid[], %(streams)s::uuid[]) as g (id, session)
     where w.id = g.id and w.session = g.session
    returning w.id
), idle as (
    delete from laneway.slot_counts c using laneway.slots_held u, gone g
     where u.worker_id = g.id and u.running = 0
       and c.lane = u.lane and c.worker_id = u.worker_id and c.place = u.place and c.running = 0
)
delete from laneway.limit_counts c using laneway.limits_held u, gone g
 where u.worker_id = g.id and u.running = 0
   and c.limit_name = u.limit_name and c.worker_id = u.worker_id and c.place = u.place and c.running = 0
