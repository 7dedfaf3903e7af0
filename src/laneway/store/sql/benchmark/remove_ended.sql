-- Deletes up to `limit` ended jobs of the workspace with all their data; returns how many.
select count(*)
  from laneway.remove_jobs(array(
       select o.seq from laneway.outcome o where o.workspace = %(workspace)s::text
        order by o.workspace, o.status, o.seq desc limit %(limit)s::integer))
