-- Workers that are live or were seen within the hour, newest first; or one of any age by its id.
select w.id, w.name, w.host, w.pid, w.code, w.transport, w.job_types, w.lanes, w.concurrency, w.memory_bytes,
       w.started_at, w.seen_at, w.drain_requested_at, w.drain_requested_by, w.stopped_at,
       w.stopped_at is null and w.seen_at > clock_timestamp() - interval '45 seconds' as is_live,
       coalesce((select sum(u.running) from laneway.slots_held u where u.worker_id = w.id), 0)::integer as running,
       exists (select from laneway.leader r where r.holder = w.id and r.held_until > clock_timestamp()) as is_leader,
       w.room::text, extract(epoch from clock_timestamp() - w.seen_at)::double precision as seen_s
  from laneway.workers w
 where case when %(id)s::uuid is null then coalesce(w.stopped_at, w.seen_at) > clock_timestamp() - interval '1 hour'
            else w.id = %(id)s::uuid end
 order by w.started_at desc
