-- Takes overdue leases back only while this holder leads: the epoch is renewed in the same transaction.
select epoch, reclaimed, job_types, more, has_duties is true
  from laneway.watch(%(holder)s::uuid, %(ttl)s::double precision, %(limit)s::integer)
