-- Origins of claimed jobs, in the order given: how long each has been due (first attempts only: the return time of
-- later ones is not stored), and the trace of its submit.
-- Volatile, so that it sees the same as the claim before it in the same statement.
create or replace function laneway.origins(
    p_seqs bigint[], p_attempts integer[], out waits double precision[], out traces text[])
language sql volatile
set jit = off
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
    select array_agg(case when g.attempt = 1 then greatest(0,
                         extract(epoch from clock_timestamp() - greatest(j.created_at, j.run_at))::double precision) end
                     order by g.n),
           array_agg(j.traceparent order by g.n)
      from unnest(p_seqs, p_attempts) with ordinality as g (seq, attempt, n)
      -- offset 0: by index from the row to its job, whatever the statistics are.
      left join lateral (select b.created_at, b.run_at, b.traceparent from laneway.jobs b
                          where b.seq = g.seq offset 0) j on true
$$;
