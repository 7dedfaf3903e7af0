-- Due jobs of a lane per job type and priority, highest priority first: one step through the index of claims per pair,
-- at most 1,000 pairs, and each pair counted up to its share of the bound. oldest_s as in laneway.measure.
create or replace function laneway.measure_lane(p_lane text, p_bound integer)
returns table (job_type text, priority integer, depth integer, is_capped boolean, oldest_s double precision)
language sql stable
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
    with recursive found as (
        (select w.job_type from laneway.ready w order by w.job_type limit 1)
        union all
        select (select w.job_type from laneway.ready w where w.job_type > t.job_type
                 order by w.job_type limit 1)
          from found t where t.job_type is not null
    ), heads as (
        select h.* from found f
         cross join (values (true), (false)) v (fresh)
         cross join lateral (
            select w.job_type, w.fresh, w.rank from laneway.ready w
             where w.job_type = f.job_type and w.fresh = v.fresh order by w.rank limit 1) h
         where f.job_type is not null and laneway.lane_of(f.job_type) = p_lane
        union all
        select n.* from heads h
         cross join lateral (
            select w.job_type, w.fresh, w.rank from laneway.ready w
             where w.job_type = h.job_type and w.fresh = h.fresh and w.rank > h.rank order by w.rank limit 1) n
    ), pairs as materialized (
        select h.*, case when count(*) over () <= 5 then p_bound
                         else greatest(p_bound / 100, 5 * p_bound / count(*) over ()) end as bound
          from (select x.job_type, x.fresh, x.rank from heads x limit 1000) h
    )
    select ltrim(p.job_type, E'\x01'), -p.rank, sum(least(n.counted, p.bound))::integer, bool_or(n.counted > p.bound),
           max(n.oldest_s)
      from pairs p
     cross join lateral (
        select (select count(*) from (select from laneway.ready w
                                       where w.job_type = p.job_type and w.fresh = p.fresh and w.rank = p.rank
                                       limit p.bound + 1) b) as counted,
               (select extract(epoch from clock_timestamp() - min(b.ready_at))::double precision
                  from (select w.ready_at from laneway.ready w
                         where w.job_type = p.job_type and w.fresh = p.fresh and w.rank = p.rank
                         order by w.seq limit 100) b) as oldest_s) n
     group by p.job_type, p.rank order by p.rank, p.job_type
$$;
