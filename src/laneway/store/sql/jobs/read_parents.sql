-- The jobs that a waiting job comes after: how many, the first open ones with their states, and a circle of waits.
-- Failed ones come first, of the first thousand. The circle is searched among the next thousand edges. No row if no edge is
-- open.
with recursive job as materialized (
    select j.seq from laneway.jobs j where j.id = %(id)s::uuid
), open as materialized (
    -- Ordered and limited, as below: by index, whatever the statistics are.
    select e.parent, e.rule from job
     cross join lateral (select x.parent, x.rule from laneway.open_edges x where x.child = job.seq
                          order by x.parent limit %(bound)s::integer) e
), walk (seq, path) as (
    select o.parent, array[job.seq, o.parent] from job cross join open o
    union all
    select e.parent, w.path || e.parent from walk w
     cross join lateral (select x.parent from laneway.open_edges x where x.child = w.seq order by x.parent limit 1000) e
     where w.seq <> w.path[1] and cardinality(w.path) < 12
)
select greatest(coalesce(cardinality(l.parents), 0), (select count(*) from open))::integer,
       (select count(*) from open)::integer,
       (select jsonb_agg(jsonb_build_array(x.id, x.status, x.rule) order by x.place, x.seq)::text from (
            select v.id, v.seq, v.status, o.rule,
                   case when v.status in ('failed', 'cancelled') then 0 when v.status = 'running' then 1 else 2 end as place
              from (select * from open limit 1000) o
             cross join lateral (select t.id, t.seq, t.status from laneway.jobs_view t where t.seq = o.parent offset 0) v
             order by place, v.seq limit %(shown)s::integer) x),
       (select array_agg(j.id order by p.place) from (
            select w.path from (select * from walk limit 1000) w where w.seq = w.path[1] limit 1) c
         cross join lateral unnest(c.path) with ordinality as p (seq, place)
          join laneway.jobs j on j.seq = p.seq)
  from job left join laneway.links l on l.seq = job.seq
 where exists (select from open)
