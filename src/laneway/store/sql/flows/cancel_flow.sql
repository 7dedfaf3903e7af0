-- Cancels one batch of the jobs of a flow that have not ended, newest first.
select cancelled, requested, busy, before, workers
  from laneway.cancel_flow(%(id)s::uuid, %(by)s::text, %(reason)s::text, %(limit)s::integer, %(before)s::bigint)
