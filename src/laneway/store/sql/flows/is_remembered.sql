-- Whether a job is a sub-job whose handler goes on and remembers its end.
select laneway.is_remembered(j.seq) from laneway.jobs j where j.id = %(id)s::uuid
