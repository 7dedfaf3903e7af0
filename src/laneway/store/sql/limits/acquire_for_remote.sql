-- Acquires limits for the running attempt, all or none, each for at most the longest hold.
select answer, wait_s
  from laneway.acquire_for_remote(%(seq)s::bigint, %(attempt)s::integer, %(names)s::text[], %(wants)s::integer[],
                                  %(inside)s::integer[], %(longest)s::double precision)
