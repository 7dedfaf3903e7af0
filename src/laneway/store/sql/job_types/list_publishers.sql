-- Which application publishes which job type, by both names; one page.
-- Stale: not seen for so many days (code without a file: for one), while another application that is seen publishes the
-- type too, which it binds no more (laneway.binds).
with published as (
    select p.job_type, p.application, p.first_at, p.published_at, p.seen_at,
           p.seen_at < clock_timestamp() - make_interval(
               days => case p.application when '__main__' then 1 else %(stale_days)s::integer end)
           and exists (select from laneway.type_publishers o
                        where o.job_type = p.job_type and o.application <> p.application
                          and o.seen_at >= clock_timestamp() - make_interval(days => %(stale_days)s::integer)) as is_stale
      from laneway.type_publishers p
     where (%(types)s::text[] is null or p.job_type = any (%(types)s::text[]))
       and (p.job_type, p.application) > (%(after_type)s::text, %(after_application)s::text)
)
select job_type, application, first_at, published_at, seen_at, is_stale from published
 where is_stale or not %(stale_only)s::boolean
 order by job_type, application limit %(limit)s::integer
