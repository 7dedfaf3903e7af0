-- Deletes counters and rows of workers that stopped long ago and are no longer referenced, as the leader.
with term as materialized (
    select from laneway.leader where holder = %(holder)s::uuid and held_until > clock_timestamp()
), idle as (
    delete from laneway.slot_counts c using laneway.slots_held u, laneway.workers w
     where w.id = u.worker_id and u.running = 0 and exists (select from term)
       and coalesce(w.stopped_at, w.seen_at) < clock_timestamp() - interval '10 minutes'
       and c.lane = u.lane and c.worker_id = u.worker_id and c.place = u.place and c.running = 0
), unlimited as (
    delete from laneway.limit_counts c using laneway.limits_held u, laneway.workers w
     where w.id = u.worker_id and u.running = 0 and exists (select from term)
       and coalesce(w.stopped_at, w.seen_at) < clock_timestamp() - interval '10 minutes'
       and c.limit_name = u.limit_name and c.worker_id = u.worker_id and c.place = u.place and c.running = 0
), started as (
    -- The longest period is a day; sites without new starts leave their rows behind.
    delete from laneway.limit_starts s
     where s.slice < extract(epoch from clock_timestamp() - interval '3 days') * 1000000 and exists (select from term)
), waited as (
    -- A worker that still waits asks again and is queued again.
    delete from laneway.limit_waiters h
     where exists (select from term) and not exists (
        select from laneway.turns_held t
         where t.limit_name = h.limit_name and t.lane = h.lane and t.worker_id = h.worker_id and t.kind = h.kind
           and t.since >= clock_timestamp() - interval '1 hour')
)
delete from laneway.workers w
 where coalesce(w.stopped_at, w.seen_at) < clock_timestamp() - interval '90 days'
   and not exists (select from laneway.lease l where l.worker_id = w.id) and exists (select from term)
