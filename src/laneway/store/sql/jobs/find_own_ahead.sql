-- Jobs of one submitter that wait before a job in its lane, first to start first; of its newest 1,000 jobs.
select b.id
  from laneway.ready me
 cross join lateral (
    select j.seq, j.id from laneway.jobs j
     where j.created_by collate "C" = %(owner)s::text order by j.seq desc limit 1000) b
 -- offset 0: by index, whatever the statistics say.
 cross join lateral (select r.rank, r.job_type from laneway.ready r where r.seq = b.seq offset 0) r
 where me.seq = (select j.seq from laneway.jobs j where j.id = %(id)s::uuid)
   and (r.rank, b.seq) < (me.rank, me.seq) and laneway.lane_of(r.job_type) = laneway.lane_of(me.job_type)
 order by r.rank, b.seq limit %(limit)s::integer
