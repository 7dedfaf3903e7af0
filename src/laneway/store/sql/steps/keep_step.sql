-- Keeps a step's result only for the attempt that runs; what was kept first stays.
select answer, result
  from laneway.step(%(seq)s::bigint, %(attempt)s::integer, %(name)s::text, %(result)s::text,
                    %(took)s::double precision)
