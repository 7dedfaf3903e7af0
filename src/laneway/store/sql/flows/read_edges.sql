-- The edges of one job by the ids of the other jobs: its parents in their order, its owner, and the jobs that come after it.
-- Lists are bounded. Of those that no longer wait for it, only some are found: among the next jobs of its flow.
with job as materialized (
    select j.seq, j.flow, l.parents, l.after_failure, l.owner
      from laneway.jobs j left join laneway.links l on l.seq = j.seq where j.id = %(id)s::uuid
), followers as materialized (
    -- Not its owner, which waits for it as a sub-job.
    select e.child as seq from job
     cross join lateral (select x.child from laneway.open_edges x
                          where x.parent = job.seq and x.child is distinct from job.owner
                          order by x.child limit %(most)s::integer) e
    union
    -- Submitted after it, and so with a higher number.
    select k.seq from job
     cross join lateral (select x.seq, x.parents from laneway.links x
                          where x.flow = job.flow and x.seq > job.seq
                          order by x.seq limit %(look)s::integer) k
     where job.seq = any (k.parents)
)
select array(select j.id from unnest(job.parents[:%(most)s::integer]) with ordinality as p (seq, n)
               join laneway.jobs j on j.seq = p.seq order by p.n),
       case when job.parents is not null then job.after_failure end,
       (select j.id from laneway.jobs j where j.seq = job.owner),
       array(select j.id from (select f.seq from followers f order by f.seq limit %(most)s::integer) f
               join laneway.jobs j on j.seq = f.seq order by f.seq)
  from job
