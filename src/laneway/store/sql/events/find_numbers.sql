-- The numbers of jobs by their ids; of those that are not there nothing.
select j.id, j.seq from laneway.jobs j where j.id = any (%(ids)s::uuid[])
