-- Starts and ends of jobs per time bucket, lane and (unless by_lane) job type, from the newest outcomes only.
-- Its cost does not depend on the number of ended jobs; the last column tells whether there were more.
with newest as materialized (
    select o.seq, o.status, o.lane, o.job_type, o.attempt, o.claimed_at, o.started_at, o.finished_at
      from laneway.outcome o order by o.seq desc limit %(bound)s::integer
), ended as materialized (
    -- A lookup per row: a join might read every job.
    select n.*, case when n.attempt = 1 then greatest(0, extract(epoch from n.claimed_at - (
                    select greatest(j.created_at, j.run_at) from laneway.jobs j where j.seq = n.seq))) end as wait_s
      from newest n
     where n.lane is not null and n.finished_at > clock_timestamp() - make_interval(secs => %(window_s)s)
       and (%(lanes)s::text[] is null or n.lane = any (%(lanes)s::text[]))
       and (%(job_type)s::text is null or n.job_type = %(job_type)s::text)
), happened as (
    select e.claimed_at as at, e.lane, e.job_type, 'started' as what, e.wait_s,
           null::double precision as run_s from ended e
    union all
    select e.finished_at, e.lane, e.job_type, e.status, null, extract(epoch from e.finished_at - e.started_at) from ended e
    union all
    select l.claimed_at, l.lane, ltrim(l.job_type, E'\x01'), 'started', null, null
      from (select r.claimed_at, r.lane, r.job_type from laneway.lease r order by r.seq desc limit %(bound)s::integer) l
     where (%(lanes)s::text[] is null or l.lane = any (%(lanes)s::text[]))
       and (%(job_type)s::text is null or ltrim(l.job_type, E'\x01') = %(job_type)s::text)
)
-- A bucket as long as the window is the window, up to now.
select case when %(bucket_s)s::double precision < %(window_s)s::double precision
            then date_bin(make_interval(secs => %(bucket_s)s), h.at, 'epoch'::timestamptz)
            else statement_timestamp() - make_interval(secs => %(window_s)s) end as bucket, h.lane,
       case when not %(by_lane)s::boolean then h.job_type end as job_type,
       (count(*) filter (where h.what = 'started'))::integer,
       (count(*) filter (where h.what = 'completed'))::integer,
       (count(*) filter (where h.what = 'failed'))::integer,
       (count(*) filter (where h.what = 'cancelled'))::integer,
       percentile_cont(0.5) within group (order by h.wait_s)::double precision,
       percentile_cont(0.95) within group (order by h.wait_s)::double precision,
       percentile_cont(0.5) within group (order by h.run_s)::double precision,
       percentile_cont(0.95) within group (order by h.run_s)::double precision,
       (select count(*) from newest) >= %(bound)s::integer
  from happened h
 where h.at > clock_timestamp() - make_interval(secs => %(window_s)s)
 group by 1, 2, 3 order by 1 desc, 2, 3 limit %(points)s::integer
