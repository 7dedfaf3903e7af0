-- Jobs that match a filter, newest first, one page by seq.
select v.*
  from laneway.matching(%(status)s::text, %(before)s::bigint, %(limit)s::integer, %(lane)s::text, %(job_type)s::text,
                        %(tag)s::text, %(worker)s::text, %(workspace)s::text, %(since)s::timestamptz,
                        %(until)s::timestamptz, %(older_than)s::double precision,
                        %(newer_than)s::double precision, %(q)s::text, %(max_cost)s::numeric, %(unit)s::text,
                        %(within)s::jsonb) m
 cross join lateral (select t.* from laneway.jobs_as_text t where t.seq = m.seq offset 0) v
 order by m.seq desc
