-- Deletes up to `limit` waiting jobs of the types; returns how many.
with gone as (
    delete from laneway.ready r
     where r.ctid = any (array(
        select x.ctid from laneway.ready x where x.job_type = any (%(job_types)s::text[])
         limit %(limit)s::integer for update skip locked))
    returning r.seq
), gone_attempts as (
    delete from laneway.attempts a using gone g where a.seq = g.seq
)
delete from laneway.jobs j using gone g where j.seq = g.seq returning j.seq
