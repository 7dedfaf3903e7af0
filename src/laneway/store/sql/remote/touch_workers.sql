-- Records that remote workers are live, only if the named stream is their newest; returns whether it is.
-- Also returns whether each is drained, and the number of its leases by the counters.
with given as materialized (
    select * from unnest(%(ids)s::uuid[], %(streams)s::uuid[], %(memory)s::bigint[], %(rooms)s::jsonb[], %(changed)s::boolean[])
        as g (id, session, memory, room, is_changed)
), touched as (
    update laneway.workers w
       set seen_at = clock_timestamp(), stopped_at = null, memory_bytes = coalesce(g.memory, w.memory_bytes),
           room = coalesce(g.room, w.room)
      from given g
     where w.id = g.id and w.session = g.session
       and (g.is_changed or w.stopped_at is not null or w.seen_at < clock_timestamp() - interval '2 seconds')
), held as (
    select u.worker_id, sum(u.running)::integer as running from laneway.slots_held u
     where u.worker_id = any (%(ids)s::uuid[]) group by u.worker_id
)
select g.id, coalesce(w.session = g.session, false), w.drain_requested_at is not null, coalesce(h.running, 0)
  from given g
  left join laneway.workers w on w.id = g.id
  left join held h on h.worker_id = g.id
