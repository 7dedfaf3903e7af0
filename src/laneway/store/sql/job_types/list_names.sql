-- The names of published job types; a bounded number.
select name from laneway.job_types where published_at is not null order by name limit %(limit)s::integer
