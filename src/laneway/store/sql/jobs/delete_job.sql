-- Deletes a job that has ended, with all that belongs to it; the outcome row decides the race with a retry.
with dead as materialized (
    delete from laneway.outcome o using laneway.jobs j
     where j.id = %(id)s::uuid and o.seq = j.seq returning o.seq
), gone_attempts as (
    delete from laneway.attempts a using dead d where a.seq = d.seq
), gone_progress as (
    delete from laneway.progress p using dead d where p.seq = d.seq
), gone_logs as (
    delete from laneway.logs n using dead d where n.seq = d.seq
)
delete from laneway.jobs j using dead d where j.seq = d.seq returning j.id
