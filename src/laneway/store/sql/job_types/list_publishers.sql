-- Applications and the job types they publish, by both names; one page.
-- Stale: no longer seen, while another live application publishes the type too. Of a stale publication,
-- only the approval policy still binds other applications.
with published as (
    select p.job_type, p.application, p.first_at, p.published_at, p.seen_at,
           not laneway.is_current_publisher(p.application, p.seen_at)
           and exists (select from laneway.type_publishers o
                        where o.job_type = p.job_type and o.application <> p.application
                          and laneway.is_current_publisher(o.application, o.seen_at)) as is_stale
      from laneway.type_publishers p
     where (%(types)s::text[] is null or p.job_type = any (%(types)s::text[]))
       and (p.job_type, p.application) > (%(after_type)s::text, %(after_application)s::text)
)
select job_type, application, first_at, published_at, seen_at, is_stale from published
 where is_stale or not %(stale_only)s::boolean
 order by job_type, application limit %(limit)s::integer
