-- One job as shown to users.
select * from laneway.jobs_as_read where seq = (select j.seq from laneway.jobs j where j.id = %(id)s::uuid)
