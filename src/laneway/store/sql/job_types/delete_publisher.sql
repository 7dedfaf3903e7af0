-- Deletes what an application published of one job type or of all, also its end hooks; returns the job types.
with hooks as (
    delete from laneway.end_hooks
     where application = %(application)s::text and (%(job_type)s::text is null or name = %(job_type)s::text)
)
delete from laneway.type_publishers
 where application = %(application)s::text and (%(job_type)s::text is null or job_type = %(job_type)s::text)
returning job_type
