-- Deletes an ended job with all its data; the outcome row decides a race with a retry.
with one as materialized (
    select j.seq, laneway.emit_removal(j.seq) from laneway.jobs j where j.id = %(id)s::uuid
)
select r.id from laneway.remove_jobs(array(select o.seq from one o)) as r (id)
