-- Stores a sleep or a wait for an event only for the running attempt; the first one of a name stays.
select answer, state, result
  from laneway.begin_wait(%(seq)s::bigint, %(attempt)s::integer, %(name)s::text, %(kind)s::text,
                          %(seconds)s::double precision, %(event)s::text, %(key)s::text)
