-- Lapsed leases that are not reclaimed yet, the age of the oldest, and whether a process reported lately that reclaims them.
select count(*)::integer, extract(epoch from clock_timestamp() - min(lease_until))::double precision,
       exists (select from laneway.leader r where r.held_until > clock_timestamp())
       or exists (select from laneway.workers x
                   where x.stopped_at is null and x.seen_at > clock_timestamp() - interval '12 seconds'
                     and x.transport <> 'grpc')
  from laneway.lease where lease_until < clock_timestamp()
