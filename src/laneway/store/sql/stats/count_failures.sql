-- Failures within the window by lane, job type and error type, most frequent first, from the newest failures only.
-- Its cost does not depend on the number of ended jobs. Each of at most 100 workspaces is read by index, up to its
-- share of the bound; those with more failures divide what the others leave. With more workspaces, the newest ended
-- jobs are read instead. The first column tells whether there were more.
with recursive met as (
    (select o.workspace from laneway.outcome o order by o.workspace limit 1)
    union all
    select (select o.workspace from laneway.outcome o where o.workspace > m.workspace order by o.workspace limit 1)
      from met m where m.workspace is not null
), places as materialized (
    select m.workspace from met m where m.workspace is not null limit 101
), share as materialized (
    select greatest(%(bound)s::integer / greatest(count(*), 1), 1)::integer as most, count(*) > 100 as is_crowded
      from places
), shared as materialized (
    select e.seq, p.workspace
      from places p cross join share s
     cross join lateral laneway.ended_seqs(array[p.workspace], array['failed'], 9223372036854775807, 0, s.most) e (seq)
     -- The largest bound, for the planner: by its guess of the rows it would compile the statement.
     where not s.is_crowded limit 10000
), busy as materialized (
    select x.workspace, min(x.seq) as before from shared x
     group by 1 having count(*) >= (select s.most from share s)
), rest as materialized (
    select (greatest(%(bound)s::integer - (select count(*) from shared), 0) / greatest(count(*), 1))::integer as most
      from busy
), further as materialized (
    select e.seq, b.workspace
      from busy b cross join rest r
     cross join lateral laneway.ended_seqs(array[b.workspace], array['failed'], b.before, 0, r.most) e (seq)
     limit 10000
), crowd as materialized (
    select o.seq, o.status from laneway.outcome o
     where (select s.is_crowded from share s) order by o.seq desc limit %(bound)s::integer
), newest as materialized (
    select a.seq
      from (select x.seq from shared x union all select f.seq from further f
            union all select c.seq from crowd c where c.status = 'failed') a
     limit 10000
), failed as materialized (
    -- Jobs that failed before they ran, or in their analysis, count in the lane of their type. A lookup per row.
    select n.seq, o.finished_at, o.job_type, coalesce(nullif(o.lane, 'analysis'), laneway.lane_of(o.job_type)) as lane,
           coalesce(o.error_type, left(o.error ->> 'type', 200)) as error_type,
           floor(extract(epoch from clock_timestamp() - o.finished_at) / %(bucket_s)s::double precision)::integer as age
      from newest n
     cross join lateral (select x.finished_at, x.job_type, x.lane, x.error_type, x.error from laneway.outcome x
                          where x.seq = n.seq offset 0) o
     where o.finished_at > clock_timestamp() - make_interval(secs => %(window_s)s)
       and (%(job_type)s::text is null or o.job_type = %(job_type)s::text)
)
select c.is_capped, f.lane, f.job_type, f.error_type, f.failures, f.first_at, f.last_at,
       (select j.id from laneway.jobs j where j.seq = f.last_seq), f.trend
  from (select (select count(*) from crowd) >= %(bound)s::integer
               or exists (select from busy b cross join rest r
                           where (select count(*) from further f where f.workspace = b.workspace) >= r.most) as is_capped) c
  left join lateral (
    select x.lane, x.job_type, x.error_type, sum(x.n)::integer as failures, min(x.first_at) as first_at,
           max(x.last_at) as last_at, max(x.last_seq) as last_seq,
           jsonb_object_agg(x.age, x.n) as trend
      from (select y.lane, y.job_type, y.error_type, y.age, count(*)::integer as n, min(y.finished_at) as first_at,
                   max(y.finished_at) as last_at, max(y.seq) as last_seq
              from failed y
             where %(lanes)s::text[] is null or y.lane = any (%(lanes)s::text[])
             group by 1, 2, 3, 4) x
     group by 1, 2, 3
     order by 4 desc, 6 desc, 1, 2, 3 limit %(limit)s::integer) f on true
 order by f.failures desc, f.last_at desc, f.lane, f.job_type, f.error_type
