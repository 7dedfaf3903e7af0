-- Job types with due jobs but no live worker in their lane, longest wait first, among a bounded number of types.
with recursive met as (
    (select r.job_type, 1 as n from laneway.ready r order by r.job_type limit 1)
    union all
    select (select r.job_type from laneway.ready r where r.job_type > t.job_type order by r.job_type limit 1), t.n + 1
      from met t where t.job_type is not null and t.n < %(most)s::integer
), handled as materialized (
    select distinct n as name, o as lane
      from laneway.workers x cross join unnest(x.job_types) n left join lateral unnest(x.lanes) o on true
     where x.stopped_at is null and x.seen_at > clock_timestamp() - interval '45 seconds'
       and (x.concurrency > 0 or x.transport = 'grpc') and (x.lanes is null or o is not null)
)
select t.name, t.lane, extract(epoch from clock_timestamp() - min(j.due_at))::double precision
  from met m
 -- Analyses run in the lane of their type.
 cross join lateral (select ltrim(m.job_type, E'\x01') as name,
                            laneway.lane_of(ltrim(m.job_type, E'\x01')) as lane offset 0) t
 cross join (values (true), (false)) f (fresh)
 cross join lateral (select r.seq from laneway.ready r where r.job_type = m.job_type and r.fresh = f.fresh
                      order by r.rank, r.seq limit 1) r
 cross join lateral (select greatest(b.created_at, b.run_at) as due_at from laneway.jobs b where b.seq = r.seq offset 0) j
 where not exists (select from handled h where h.name = t.name and (h.lane is null or h.lane = t.lane))
 group by t.name, t.lane
 order by min(j.due_at), t.name
