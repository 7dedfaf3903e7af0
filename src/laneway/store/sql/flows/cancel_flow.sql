-- Cancels one batch of the jobs of a flow that have not ended, newest first, or some that were locked before.
select cancelled, requested, before, workers, skipped
  from laneway.cancel_flow(%(id)s::uuid, %(by)s::text, %(reason)s::text, %(limit)s::integer, %(before)s::bigint,
                           %(only)s::bigint[], %(skipped)s::bigint[])
