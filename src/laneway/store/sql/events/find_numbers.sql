-- Sequence numbers of jobs by id; unknown ids are left out.
select j.id, j.seq from laneway.jobs j where j.id = any (%(ids)s::uuid[])
