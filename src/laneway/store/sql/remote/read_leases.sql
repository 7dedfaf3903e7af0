-- Every lease of the named workers: its length, age, remaining time, and whether it was renewed.
select l.worker_id, l.seq, j.id, l.attempt, l.lane, l.job_type, l.lease_seconds,
       extract(epoch from clock_timestamp() - l.claimed_at)::double precision,
       extract(epoch from l.lease_until - clock_timestamp())::double precision,
       l.lease_until > l.claimed_at + make_interval(secs => l.lease_seconds)
  from laneway.lease l
 cross join lateral (select b.id from laneway.jobs b where b.seq = l.seq offset 0) j
 where l.worker_id = any (%(workers)s::uuid[])
