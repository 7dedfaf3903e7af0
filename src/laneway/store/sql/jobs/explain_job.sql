-- What decides whether one job can start, as of one snapshot. `ahead` stops counting at the bound.
select j.job_type, k.lane, c.paused, c.paused_by, n.enabled, n.max_slots,
       (select coalesce(sum(u.running), 0) from laneway.slot_usage u where u.lane = k.lane)::integer as slots_used,
       array(select h.id from laneway.lease l join laneway.jobs h on h.seq = l.seq
              where l.lane = k.lane and n.max_slots is not null
              order by l.claimed_at, l.seq limit %(holders)s::integer) as holders,
       extract(epoch from d.run_at - clock_timestamp())::double precision as due_in_s,
       case when w.seq is not null then (
           with recursive types as (
               (select r.job_type from laneway.ready r order by r.job_type limit 1)
               union all
               select (select r.job_type from laneway.ready r where r.job_type > t.job_type
                        order by r.job_type limit 1)
                 from types t where t.job_type is not null)
           select count(*) from (
               select from (select t.job_type from types t
                             where t.job_type is not null and laneway.lane_of(t.job_type) = k.lane) t
                cross join (values (true), (false)) f (fresh)
                cross join lateral (
                   select from laneway.ready r
                    where r.job_type = t.job_type and r.fresh = f.fresh and (r.rank, r.seq) < (w.rank, w.seq)
                    order by r.rank, r.seq limit %(bound)s::integer + 1) a
                limit %(bound)s::integer + 1) b)::integer end as ahead,
       extract(epoch from clock_timestamp() - l.lease_until)::double precision as lapsed_s,
       coalesce(p.published_at is not null, false) as is_published,
       v.live, v.knowing, v.serving
  from laneway.jobs j
 cross join laneway.control c
  left join laneway.ready w on w.seq = j.seq
  left join laneway.delayed d on d.seq = j.seq
  left join laneway.lease l on l.seq = j.seq
  left join laneway.job_types p on p.name = j.job_type
 cross join lateral (select coalesce(l.lane, laneway.lane_of(j.job_type)) as lane) k
  left join laneway.worker_lanes n on n.name = k.lane
 cross join lateral (
    select count(*)::integer as live,
           count(*) filter (where j.job_type = any (x.job_types))::integer as knowing,
           count(*) filter (where j.job_type = any (x.job_types)
                              and (x.lanes is null or k.lane = any (x.lanes)))::integer as serving
      from laneway.workers x
     where x.stopped_at is null and x.seen_at > clock_timestamp() - interval '45 seconds') v
 where j.id = %(id)s::uuid
