-- Job types with a fresh job below a floor, where claims do not look. Reads dead rows too.
select distinct g.job_type
  from unnest(%(types)s::text[], %(ranks)s::integer[], %(floors)s::bigint[]) as g (job_type, rank, floor)
 where (select true from laneway.ready w
         where w.job_type = g.job_type and w.fresh and w.rank = g.rank and w.seq <= g.floor limit 1)
