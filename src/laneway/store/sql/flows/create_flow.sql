-- Creates a flow without jobs, in the transaction that stores its jobs.
select laneway.create_flow(%(id)s::uuid, %(name)s::text, %(workspace)s::text, %(tags)s::text[], %(created_by)s::text)
