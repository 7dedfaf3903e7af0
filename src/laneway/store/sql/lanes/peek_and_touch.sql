-- Polls as lanes/peek_lanes, and records that the worker process is live unless its row is locked.
-- Never waits for that row: is_drained is then null.
with own as materialized (
    select w.id from laneway.workers w where w.id = %(worker)s::uuid for no key update skip locked
), touched as (
    update laneway.workers w
       set seen_at = clock_timestamp(), stopped_at = null, memory_bytes = %(memory_bytes)s::bigint,
           room = coalesce(%(room)s::jsonb, room)
      from own o where w.id = o.id
    returning w.drain_requested_at is not null as is_drained
)
select p.version, p.paused, p.due, p.promoted, p.next_due_s, (select t.is_drained from touched t) as is_drained
  from laneway.peek(%(types)s::text[], null, %(ranged)s::text[], %(fresh)s::boolean[], %(los)s::integer[],
                    %(floors)s::bigint[], %(highs)s::integer[]) p
