-- Those of the named job types that are published, and their handler timeout in seconds.
select t.name, t.timeout_s from laneway.job_types t
 where t.name = any (%(names)s::text[]) and t.published_at is not null
