-- Jobs by sequence number as shown to users, each by index.
select v.* from unnest(%(seqs)s::bigint[]) s (seq)
 cross join lateral (select t.* from laneway.jobs_as_read t where t.seq = s.seq offset 0) v
