-- Ends jobs older than their type's max_age, a bounded number, while this holder leads.
select ended, job_types, more
  from laneway.expire_overaged(%(holder)s::uuid, %(epoch)s::bigint, %(limit)s::integer)
