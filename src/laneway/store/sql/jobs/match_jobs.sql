-- Numbers and ids of jobs that match a filter, newest first, one page by seq.
select m.seq, m.id
  from laneway.matching(%(status)s::text, %(before)s::bigint, %(limit)s::integer, %(lane)s::text, %(job_type)s::text,
                        %(tag)s::text, %(worker)s::text, %(workspace)s::text, %(since)s::timestamptz,
                        %(until)s::timestamptz, %(older_than)s::double precision,
                        %(newer_than)s::double precision, %(q)s::text, %(max_cost)s::numeric, %(unit)s::text,
                        %(within)s::jsonb) m
 order by m.seq desc
