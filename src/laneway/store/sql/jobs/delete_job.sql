-- Deletes a job that has ended, with all that belongs to it; the outcome row decides the race with a retry.
with dead as materialized (
    delete from laneway.outcome o where o.seq = (select j.seq from laneway.jobs j where j.id = %(id)s::uuid)
    returning o.seq
), gone_attempts as (
    delete from laneway.attempts a where a.seq = any (array(select d.seq from dead d))
), gone_progress as (
    delete from laneway.progress p where p.seq = any (array(select d.seq from dead d))
), gone_logs as (
    delete from laneway.logs n where n.seq = any (array(select d.seq from dead d))
)
delete from laneway.jobs j where j.seq = any (array(select d.seq from dead d)) returning j.id
