-- Deletes what a stopped worker left of the types: leases and delayed jobs, and the counters of the lane.
with leased as (
    delete from laneway.lease l where l.lane = %(lane)s::text and l.job_type = any (%(job_types)s::text[])
    returning l.seq
), postponed as (
    delete from laneway.delayed d where d.job_type = any (%(job_types)s::text[]) returning d.seq
), counts as (
    delete from laneway.slot_counts c where c.lane = %(lane)s::text
), holders as (
    delete from laneway.slot_holders h where h.lane = %(lane)s::text
), gone as materialized (
    select l.seq from leased l union all select d.seq from postponed d
), gone_attempts as (
    delete from laneway.attempts a using gone g where a.seq = g.seq
)
delete from laneway.jobs j using gone g where j.seq = g.seq
