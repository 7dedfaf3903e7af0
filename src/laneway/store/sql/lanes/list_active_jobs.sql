-- Running jobs by lane, with their slot and since when.
select l.lane, j.id, j.job_type, l.attempt, l.worker_id, w.name, l.claimed_at, l.lease_until,
       extract(epoch from clock_timestamp() - l.claimed_at)::double precision as held_s, l.cancel_requested_at,
       p.stage, p.done, p.total, p.message, l.retries
  from laneway.lease l
  join laneway.jobs j on j.seq = l.seq
  left join laneway.workers w on w.id = l.worker_id
  left join laneway.progress p on p.seq = l.seq
 order by l.lane, l.claimed_at, l.seq limit %(limit)s::integer
