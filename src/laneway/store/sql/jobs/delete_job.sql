-- Deletes a job that has ended, with all that belongs to it; the outcome row decides the race with a retry.
select r.id from laneway.remove_jobs(array(select j.seq from laneway.jobs j where j.id = %(id)s::uuid)) as r (id)
