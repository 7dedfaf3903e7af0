-- Retries one batch of the failed and cancelled jobs of a flow, oldest first.
select retried, after, wakes from laneway.retry_flow(%(id)s::uuid, %(limit)s::integer, %(after)s::bigint)
