-- Jobs of several requests and the act of each, all or none: each job as it is then, in the order given.
select * from laneway.submit_requests(%(requests)s::jsonb)
