-- The running jobs that wait for other jobs, the queued jobs among those and the given one, and what these need.
with waiters as materialized (
    select l.seq, j.id, l.lane, l.worker_id, coalesce(l.limits, '{}') as limits, l.waits_for
      from laneway.lease l join laneway.jobs j on j.seq = l.seq
     where l.waits_for is not null order by l.claimed_at, l.seq limit %(bound)s::integer
), queued as materialized (
    select j.seq, j.id, q.job_type, laneway.lane_of(q.job_type) as lane,
           -- An analysis needs neither limits nor a key.
           case when q.job_type = j.job_type then coalesce(t.limits, '{}') else '{}' end as limits,
           (select h.seq from laneway.key_holders h
             where h.workspace = j.workspace and h.concurrency_key = j.concurrency_key and h.seq <> j.seq
               and q.job_type = j.job_type) as key_holder,
           coalesce(t.isolation, 'async') as isolation
      from (select unnest(w.waits_for) as seq from waiters w
            union select b.seq from laneway.jobs b where b.id = %(id)s::uuid) n
      join laneway.jobs j on j.seq = n.seq
     cross join lateral (select r.job_type from laneway.ready r where r.seq = j.seq
                         union all select k.job_type from laneway.key_waiters k where k.seq = j.seq) q
      left join laneway.job_types t on t.name = j.job_type
), served as (
    -- The workers that could run each queued job, if none of them has room for it.
    select q.seq, array_agg(x.id) as workers
      from queued q
      join laneway.workers x on ltrim(q.job_type, E'\x01') = any (x.job_types)
       and (x.lanes is null or q.lane = any (x.lanes) or q.lane = 'analysis')
       and x.stopped_at is null and x.seen_at > clock_timestamp() - interval '45 seconds'
       and x.drain_requested_at is null and x.concurrency > 0
     group by q.seq having bool_and((x.room -> 'full' -> q.isolation ->> q.lane) is not null)
)
select (select jsonb_agg(to_jsonb(w))::text from waiters w),
       (select jsonb_agg(jsonb_build_object('seq', q.seq, 'id', q.id, 'lane', q.lane, 'limits', q.limits,
                                            'key_holder', q.key_holder, 'workers', s.workers))::text
          from queued q left join served s on s.seq = q.seq),
       (select jsonb_object_agg(n.name, jsonb_build_object('most', n.max_slots, 'used',
                   (select count(*) from laneway.lease l where l.lane = n.name)))::text
          from laneway.worker_lanes n
         where n.max_slots is not null and n.name in (select q.lane from queued q)),
       (select jsonb_object_agg(m.name, jsonb_build_object('most', m.max_concurrent, 'used',
                   (select coalesce(sum(u.running), 0) from laneway.limits_held u where u.limit_name = m.name)))::text
          from laneway.limits m
         where m.max_concurrent is not null and m.scope = 'cluster'
           and m.name in (select unnest(q.limits) from queued q)),
       (select jsonb_object_agg(h.worker_id, h.used)::text
          from (select l.worker_id, count(*) as used from laneway.lease l
                 where l.worker_id in (select unnest(s.workers) from served s) group by l.worker_id) h)
 where exists (select from waiters)
