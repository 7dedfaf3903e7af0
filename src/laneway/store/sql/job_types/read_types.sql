-- What is published of the given job types; a type nobody published has no row.
select name, arguments::text, priority, max_retries, published_at is not null as is_published
  from laneway.job_types where name = any (%(names)s::text[])
