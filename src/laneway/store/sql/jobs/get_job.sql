-- One job as people see it.
select * from laneway.jobs_as_text where id = %(id)s::uuid
