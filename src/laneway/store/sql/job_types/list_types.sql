-- Published job types by name, and whether a live worker handles them; one page.
select t.name, laneway.lane_of(t.name), t.arguments::text, t.priority, t.max_retries, t.timeout_s, t.isolation, t.stale,
       t.limits, t.has_analysis, t.approval, t.approval_below::double precision, t.approval_unit, t.two_person,
       t.approval_expires_s, t.max_age_s, t.unique_for_s, t.unique_by,
       t.keep_completed_s, t.keep_cancelled_s, t.keep_failed_s, t.keep_count, t.published_at,
       exists (select from laneway.workers w
                where w.stopped_at is null and w.seen_at > clock_timestamp() - interval '45 seconds'
                  and t.name = any (w.job_types))
  from laneway.job_types t
 where t.published_at is not null and (%(after)s::text is null or t.name > %(after)s::text)
   and (%(lanes)s::text[] is null or laneway.lane_of(t.name) = any (%(lanes)s::text[]))
 order by t.name limit %(limit)s::integer
