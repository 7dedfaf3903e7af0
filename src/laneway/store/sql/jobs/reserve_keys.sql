-- Takes unique keys for new jobs, in key order; returns the sequence numbers that got theirs.
insert into laneway.job_keys (workspace, job_type, unique_key, seq)
select g.workspace, g.job_type, g.unique_key, g.seq
  from unnest(%(workspaces)s::text[], %(job_types)s::text[], %(keys)s::text[], %(seqs)s::bigint[])
       as g (workspace, job_type, unique_key, seq)
 order by g.workspace collate "C", g.job_type collate "C", g.unique_key collate "C", g.seq
on conflict do nothing
returning seq
