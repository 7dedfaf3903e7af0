-- Failures within the window by lane, job type and error type, most frequent first, from the newest ends only.
-- Its cost does not depend on the number of ended jobs; the first column tells whether there were more.
with newest as materialized (
    select o.seq, o.status, o.lane, o.job_type, o.finished_at
      from laneway.outcome o order by o.seq desc limit %(bound)s::integer
), failed as materialized (
    -- Jobs that failed before they ran, or in their analysis, count in the lane of their type.
    select n.seq, n.finished_at, n.job_type, coalesce(nullif(n.lane, 'analysis'), laneway.lane_of(n.job_type)) as lane,
           -- A lookup per row: errors are read only for failures.
           (select left(o.error ->> 'type', 200) from laneway.outcome o where o.seq = n.seq) as error_type
      from newest n
     where n.status = 'failed' and n.finished_at > clock_timestamp() - make_interval(secs => %(window_s)s)
       and (%(job_type)s::text is null or n.job_type = %(job_type)s::text)
)
select c.is_capped, f.lane, f.job_type, f.error_type, f.failures, f.last_at,
       (select j.id from laneway.jobs j where j.seq = f.last_seq)
  from (select count(*) >= %(bound)s::integer as is_capped from newest) c
  left join lateral (
    select x.lane, x.job_type, x.error_type, count(*)::integer as failures, max(x.finished_at) as last_at,
           max(x.seq) as last_seq
      from failed x
     where %(lanes)s::text[] is null or x.lane = any (%(lanes)s::text[])
     group by 1, 2, 3
     order by 4 desc, 5 desc, 1, 2, 3 limit %(limit)s::integer) f on true
 order by f.failures desc, f.last_at desc, f.lane, f.job_type, f.error_type
