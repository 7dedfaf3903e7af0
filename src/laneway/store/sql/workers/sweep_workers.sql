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
), waiters as materialized (
    -- Those that left a minute ago, and those that have waited for an hour: one that still waits asks again.
    -- Skips rows that are being written.
    select h.ctid as tid from laneway.limit_waiters h
      join laneway.turns_held n
        on n.limit_name = h.limit_name and n.lane = h.lane and n.worker_id = h.worker_id and n.kind = h.kind
     cross join lateral (
        select from laneway.limit_turns x
         where x.ctid = n.tid
           and x.since < clock_timestamp() - case when x.waits then interval '1 hour' else interval '1 minute' end
           for update skip locked) t
     where exists (select from term)
       for update of h skip locked
), waited as (
    delete from laneway.limit_waiters h
     where h.ctid = any (array(select w.tid from waiters w))
        or exists (select from term) and not exists (
           select from laneway.limit_turns x
            where x.limit_name = h.limit_name and x.lane = h.lane and x.worker_id = h.worker_id and x.kind = h.kind)
)
delete from laneway.workers w
 where coalesce(w.stopped_at, w.seen_at) < clock_timestamp() - interval '90 days'
   and not exists (select from laneway.lease l where l.worker_id = w.id) and exists (select from term)
