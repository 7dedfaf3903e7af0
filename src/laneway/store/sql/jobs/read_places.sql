-- Owner, workspace and lane of jobs, by id.
select j.id, j.created_by, j.workspace, laneway.lane_of(j.job_type)
  from laneway.jobs j where j.id = any (%(ids)s::uuid[])
