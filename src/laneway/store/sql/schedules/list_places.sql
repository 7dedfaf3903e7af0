-- Every schedule with what decides who sees it, without payloads.
select s.name, s.workspace, s.job_type from laneway.schedules s order by s.name
