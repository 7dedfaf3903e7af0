-- Fails a bounded number of jobs older than their type's max_age, while this holder is the leader.
select ended, job_types, more
  from laneway.expire_overaged(%(holder)s::uuid, %(epoch)s::bigint, %(limit)s::integer)
