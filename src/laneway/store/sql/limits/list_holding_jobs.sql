-- The running jobs that hold each named limit, at most so many of each, those that started first; and how often.
-- One pass over the leases.
select h.name, j.id, h.job_type, h.lane, h.worker_id, w.name as worker, h.claimed_at, h.held
  from (select n.name, e.seq, ltrim(e.job_type, E'\x01') as job_type, e.lane, e.worker_id, e.claimed_at,
               count(*)::integer as held, row_number() over (partition by n.name order by e.claimed_at, e.seq) as place
          from laneway.lease e cross join unnest(e.limits) n (name)
         where e.limits && %(names)s::text[] and n.name = any (%(names)s::text[])
         group by n.name, e.seq, e.job_type, e.lane, e.worker_id, e.claimed_at) h
  join laneway.jobs j on j.seq = h.seq
  left join laneway.workers w on w.id = h.worker_id
 where h.place <= %(most)s::integer
 order by h.name, h.place
