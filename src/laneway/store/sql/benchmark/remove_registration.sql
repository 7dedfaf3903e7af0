-- Deletes the lane, the job types and the workers of a benchmark.
with lanes as (
    delete from laneway.worker_lanes l where l.name = %(lane)s::text
), published as (
    delete from laneway.type_publishers p where p.job_type = any (%(job_types)s::text[])
), types as (
    delete from laneway.job_types t where t.name = any (%(job_types)s::text[])
)
delete from laneway.workers w where w.job_types && %(job_types)s::text[]
