-- Says of remote workers that they are gone, only where the session named is their newest.
with gone as (
    update laneway.workers w set stopped_at = clock_timestamp()
      from unnest(%(ids)s::uuid[], %(sessions)s::uuid[]) as g (id, session)
     where w.id = g.id and w.session = g.session
    returning w.id
), idle as (
    delete from laneway.slot_usage u using gone g where u.worker_id = g.id and u.running = 0
)
delete from laneway.limit_usage u using gone g where u.worker_id = g.id and u.running = 0
