-- Every schedule with the fields that decide its visibility, without payloads.
select s.name, s.workspace, s.job_type from laneway.schedules s order by s.name
