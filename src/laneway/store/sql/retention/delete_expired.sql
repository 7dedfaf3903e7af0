-- Deletes expired jobs, one bounded step of the walk, while this holder is the leader.
select removed, before, types, counts
  from laneway.delete_expired(%(holder)s::uuid, %(epoch)s::bigint, %(before)s::bigint, %(types)s::text[], %(counts)s::bigint[],
                              %(scan)s::integer, %(limit)s::integer)
