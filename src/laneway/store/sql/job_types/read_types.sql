-- Published properties of the given job types; unpublished types have no row.
select name, arguments::text, priority, max_retries, published_at is not null as is_published,
       unique_for_s, unique_by
  from laneway.job_types where name = any (%(names)s::text[])
