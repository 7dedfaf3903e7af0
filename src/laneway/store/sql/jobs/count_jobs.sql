-- The number of jobs that match a filter, up to the limit, and whether the search stopped before that.
select count(m.id)::integer, count(*) > count(m.id)
  from laneway.search_jobs(%(status)s::text, %(before)s::bigint, %(limit)s::integer, %(lane)s::text, %(job_type)s::text,
                           %(tag)s::text, %(worker)s::text, %(workspace)s::text, %(since)s::timestamptz,
                           %(until)s::timestamptz, %(older_than)s::double precision,
                           %(newer_than)s::double precision, %(q)s::text, %(max_cost)s::numeric, %(unit)s::text,
                           %(within)s::jsonb, %(scan)s::integer, %(private)s::jsonb, %(error_type)s::text,
                           %(was_approved)s::boolean, %(ended_since)s::timestamptz,
                           %(ended_within)s::double precision, %(delayed)s::boolean, %(flow)s::uuid) m
