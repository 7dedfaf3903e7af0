-- Lapsed leases that are not reclaimed yet, and the age of the oldest.
select count(*)::integer, extract(epoch from clock_timestamp() - min(lease_until))::double precision
  from laneway.lease where lease_until < clock_timestamp()
