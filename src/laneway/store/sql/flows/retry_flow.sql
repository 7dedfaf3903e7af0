-- Retries one batch of the failed and cancelled jobs of a flow, oldest first, up to the first that is locked.
select retried, after, wakes, is_busy
  from laneway.retry_flow(%(id)s::uuid, %(limit)s::integer, %(after)s::bigint)
