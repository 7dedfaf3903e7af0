-- Deletes what an application published of one job type or of all; returns the job types.
delete from laneway.type_publishers
 where application = %(application)s::text and (%(job_type)s::text is null or job_type = %(job_type)s::text)
returning job_type
