-- Counts approvals and failed jobs, each up to a bound, and schedules stopped by an error.
with recursive spaces as (
    -- The index of outcomes starts with the workspace.
    (select o.workspace from laneway.outcome o order by o.workspace limit 1)
    union all
    select (select o.workspace from laneway.outcome o where o.workspace > s.workspace order by o.workspace limit 1)
      from spaces s where s.workspace is not null
)
select (select count(*) from (select from laneway.awaiting limit %(bound)s::integer) a)::integer,
       (select count(*) from (
           select from spaces s
            cross join lateral (
                select from laneway.outcome o where o.workspace = s.workspace and o.status = 'failed'
                 limit %(bound)s::integer) f
            limit %(bound)s::integer) b)::integer,
       (select count(*) from laneway.schedules s where s.error is not null)::integer
