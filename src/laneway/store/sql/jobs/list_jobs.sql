-- Jobs that match a filter, newest first, one page by seq; a last row tells where an unfinished search stopped.
select case when m.id is null then m.seq end as stopped_at,
       case when m.id is null then (select j.created_at from laneway.jobs j where j.seq = m.seq) end as looked_back_to, v.*
  from laneway.search_jobs(%(status)s::text, %(before)s::bigint, %(limit)s::integer, %(lane)s::text, %(job_type)s::text,
                           %(tag)s::text, %(worker)s::text, %(workspace)s::text, %(since)s::timestamptz,
                           %(until)s::timestamptz, %(older_than)s::double precision,
                           %(newer_than)s::double precision, %(q)s::text, %(max_cost)s::numeric, %(unit)s::text,
                           %(within)s::jsonb, %(scan)s::integer, %(private)s::jsonb, %(error_type)s::text,
                           %(was_approved)s::boolean, %(ended_since)s::timestamptz,
                           %(ended_within)s::double precision, %(delayed)s::boolean, %(flow)s::uuid) m
  left join lateral (select t.* from laneway.jobs_as_read t where t.seq = m.seq and m.id is not null offset 0) v on true
 where v.seq is not null or m.id is null
 order by m.id is null, m.seq desc
