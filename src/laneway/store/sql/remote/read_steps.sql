-- Reads every step that has finished of the jobs named, in the order in which they did.
select s.seq, s.name, s.result::text, s.took_s
  from unnest(%(seqs)s::bigint[]) g
 cross join lateral (select x.* from laneway.steps x where x.seq = g offset 0) s
 order by s.seq, s.at
