-- Lets the running attempt hold the limits as often as wanted, all or none, never over any of them.
select answer, wait_s
  from laneway.acquire(%(seq)s::bigint, %(attempt)s::integer, %(names)s::text[], %(wants)s::integer[],
                       %(inside)s::integer[])
