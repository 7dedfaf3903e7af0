-- Finds those of the job types named that were published, and how long their handlers may take, in seconds.
select t.name, t.timeout_s from laneway.job_types t
 where t.name = any (%(names)s::text[]) and t.published_at is not null
