-- Jobs of one submitter that wait before a job in its lane, in start order; of its newest 1,000 jobs.
-- If a live worker handles the job, claims skip jobs that no worker handles.
with me as materialized (
    select w.seq, w.rank, ltrim(w.job_type, E'\x01') as name, laneway.lane_of(w.job_type) as lane
      from laneway.ready w where w.seq = (select j.seq from laneway.jobs j where j.id = %(id)s::uuid)
), handled as materialized (
    select distinct n as name from me cross join laneway.workers x cross join unnest(x.job_types) n
     where x.stopped_at is null and x.seen_at > clock_timestamp() - interval '45 seconds'
       and (x.concurrency > 0 or x.transport = 'grpc')
       and (x.lanes is null or me.lane = any (x.lanes) or me.lane = 'analysis')
)
select b.id
  from me
 cross join lateral (
    select j.seq, j.id from laneway.jobs j
     where j.created_by collate "C" = %(owner)s::text order by j.seq desc limit 1000) b
 -- offset 0: by index, whatever the statistics say.
 cross join lateral (select r.rank, r.job_type from laneway.ready r where r.seq = b.seq offset 0) r
 where (r.rank, b.seq) < (me.rank, me.seq) and laneway.lane_of(r.job_type) = me.lane
   and (ltrim(r.job_type, E'\x01') in (select h.name from handled h) or me.name not in (select h.name from handled h))
 order by r.rank, b.seq limit %(limit)s::integer
