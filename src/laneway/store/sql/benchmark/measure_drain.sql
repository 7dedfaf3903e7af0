-- Returns how many jobs of the type ended after the first fifth, and in how many seconds.
with ended as materialized (
    select o.finished_at, row_number() over (order by o.finished_at) as n, count(*) over () as total
      from laneway.outcome o
     where o.workspace = %(workspace)s::text and o.status = 'completed' and o.job_type = %(job_type)s::text
), begun as (
    select min(e.finished_at) as at from ended e where e.n > e.total / 5
)
select count(*) filter (where e.finished_at > b.at),
       coalesce(extract(epoch from max(e.finished_at) - min(b.at)), 0)::float8
  from ended e, begun b
