-- Moves due delayed jobs to ready and returns which types have jobs; one idle poll for a whole worker process.
select version, paused, due, promoted, next_due_s
  from laneway.peek(%(types)s::text[], null, %(ranged)s::text[], %(fresh)s::boolean[], %(los)s::integer[],
                    %(floors)s::bigint[], %(highs)s::integer[])
