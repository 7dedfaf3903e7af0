-- The number of running jobs per lane, the longest of them, and whether the lane was resumed.
select l.name, l.enabled, (select count(*) from laneway.lease c where c.lane = l.name) as running,
       r.id, r.job_type, r.attempt, r.worker, r.held_s
  from laneway.worker_lanes l
  left join lateral (
    select j.id, j.job_type, s.attempt, coalesce(w.name, s.worker_id::text) as worker,
           extract(epoch from clock_timestamp() - s.claimed_at)::double precision as held_s
      from laneway.lease s
      join laneway.jobs j on j.seq = s.seq
      left join laneway.workers w on w.id = s.worker_id
     where s.lane = l.name
     order by s.claimed_at, s.seq limit %(most)s::integer) r on true
 where l.name = any (%(lanes)s::text[])
 order by l.name, r.held_s desc
