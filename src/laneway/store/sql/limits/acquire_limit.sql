-- Acquires limits for the running attempt, all or none, never beyond any limit.
select answer, wait_s
  from laneway.acquire(%(seq)s::bigint, %(attempt)s::integer, %(names)s::text[], %(wants)s::integer[],
                       %(inside)s::integer[])
