-- Stores a step's result only for the running attempt; the first stored result stays.
select answer, result
  from laneway.save_step(%(seq)s::bigint, %(attempt)s::integer, %(name)s::text, %(result)s::text,
                         %(took)s::double precision)
