-- Stores progress, checkpoint and log lines only for the running attempt.
select seq, attempt, answer
  from laneway.report(%(seqs)s::bigint[], %(attempts)s::integer[], %(stages)s::text[],
                      %(dones)s::double precision[], %(totals)s::double precision[], %(messages)s::text[],
                      %(checkpoints)s::text[], %(log_seqs)s::bigint[], %(log_attempts)s::integer[],
                      %(log_lines)s::integer[], %(log_levels)s::text[], %(log_texts)s::text[],
                      %(log_ages)s::double precision[])
