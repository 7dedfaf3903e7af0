-- Forgets what an application published, of one job type or of all; answers which types it were.
delete from laneway.type_publishers
 where application = %(application)s::text and (%(job_type)s::text is null or job_type = %(job_type)s::text)
returning job_type
