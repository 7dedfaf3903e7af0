-- Stores step results, each only for the running attempt; never waits for a lock.
select g.n, s.answer, s.result
  from unnest(%(seqs)s::bigint[], %(attempts)s::integer[], %(names)s::text[], %(results)s::text[],
              %(took)s::double precision[]) with ordinality as g (seq, attempt, name, result, took, n)
 cross join lateral laneway.save_step(g.seq, g.attempt, g.name, g.result, g.took) s
 order by g.n
