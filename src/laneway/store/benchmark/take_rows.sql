with taken as (
    delete from laneway_bench.ready r where r.seq between %(first)s::bigint and %(last)s::bigint
    returning r.seq, r.job_type
)
insert into laneway_bench.outcome (seq, status, workspace, job_type, priority, attempt, retries)
select t.seq, 'completed', 'laneway_bench', t.job_type, 0, 1, 0 from taken t
