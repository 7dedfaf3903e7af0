-- Lets the running attempt hold the limits as often as wanted, all or none, each no longer than the longest hold.
select answer, wait_s
  from laneway.acquire_for_remote(%(seq)s::bigint, %(attempt)s::integer, %(names)s::text[], %(wants)s::integer[],
                                  %(inside)s::integer[], %(longest)s::double precision)
