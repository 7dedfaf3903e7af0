with stored as (
    insert into laneway_bench.jobs (seq, id, job_type, workspace, payload)
    select n, lpad(to_hex(n), 32, '0')::uuid, 'laneway_bench', 'laneway_bench', %(payload)s::jsonb
      from generate_series(%(first)s::bigint, %(last)s::bigint) n
    returning seq, job_type
)
insert into laneway_bench.ready (seq, job_type, rank) select s.seq, s.job_type, 0 from stored s
