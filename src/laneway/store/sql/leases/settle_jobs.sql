-- Ends each attempt only if it is the running one; at most one terminal write per attempt.
select seq, attempt, answer, status
  from laneway.settle(%(seqs)s::bigint[], %(attempts)s::integer[], %(verdicts)s::text[], %(results)s::text[],
                      %(errors)s::text[], %(delays)s::double precision[], %(ran)s::double precision[])
