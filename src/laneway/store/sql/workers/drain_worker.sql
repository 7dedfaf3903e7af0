-- Drains or resumes one worker; no row for one that has ended or fell silent long ago.
update laneway.workers w
   set drain_requested_at = case when %(drained)s::boolean then coalesce(w.drain_requested_at, clock_timestamp()) end,
       drain_requested_by = case when %(drained)s::boolean then coalesce(w.drain_requested_by, %(by)s::text) end
 where w.id = %(id)s::uuid and w.stopped_at is null and w.seen_at > clock_timestamp() - interval '1 hour'
returning true
