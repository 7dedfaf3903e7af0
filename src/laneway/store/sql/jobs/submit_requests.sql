-- Stores the jobs of several requests and an audit entry for each, all or none; returns the jobs in the order given.
select * from laneway.submit_requests(%(requests)s::jsonb)
