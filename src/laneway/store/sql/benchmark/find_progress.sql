-- Returns whether a job of the workspace has ended, and whether one of the type waits.
select exists (select from laneway.outcome o where o.workspace = %(workspace)s::text and o.status = 'completed'),
       exists (select from laneway.ready r where r.job_type = %(job_type)s::text)
