-- Slots in use, depth and oldest wait per lane and job type. Depth stops counting at the bound.
select l.name, t.job_type, u.running, n.depth, n.oldest_s
  from laneway.worker_lanes l
  left join lateral (select coalesce(sum(s.running), 0)::integer as running
                       from laneway.slot_usage s where s.lane = l.name) u on true
  left join lateral (
    select k.job_type from (
        with recursive types as (
            (select w.job_type from laneway.ready w order by w.job_type limit 1)
            union all
            select (select w.job_type from laneway.ready w where w.job_type > t.job_type
                     order by w.job_type limit 1)
              from types t where t.job_type is not null)
        select t.job_type from types t where t.job_type is not null) k
     where laneway.lane_of(k.job_type) = l.name) t on true
  left join lateral (
    select (select count(*) from (select from laneway.ready w where w.job_type = t.job_type
                                   limit %(bound)s::integer + 1) b)::integer as depth,
           (select extract(epoch from clock_timestamp() - min(b.ready_at))::double precision
              from (select w.ready_at from laneway.ready w where w.job_type = t.job_type
                     order by w.fresh, w.rank, w.seq limit 1000) b) as oldest_s) n on t.job_type is not null
 order by l.name, t.job_type
