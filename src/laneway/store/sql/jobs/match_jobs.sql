-- Sequence numbers and ids of jobs that match a filter, newest first, one page by seq.
-- A last row without an id tells where the search stopped, and the submit time of that job.
select m.seq, m.id,
       case when m.id is null then (select j.created_at from laneway.jobs j where j.seq = m.seq) end as looked_back_to
  from laneway.search_jobs(%(status)s::text, %(before)s::bigint, %(limit)s::integer, %(lane)s::text, %(job_type)s::text,
                           %(tag)s::text, %(worker)s::text, %(workspace)s::text, %(since)s::timestamptz,
                           %(until)s::timestamptz, %(older_than)s::double precision,
                           %(newer_than)s::double precision, %(q)s::text, %(max_cost)s::numeric, %(unit)s::text,
                           %(within)s::jsonb, %(scan)s::integer, %(private)s::jsonb, %(error_type)s::text,
                           %(was_approved)s::boolean, %(ended_since)s::timestamptz,
                           %(ended_within)s::double precision, %(delayed)s::boolean, %(flow)s::uuid) m
 order by m.id is null, m.seq desc
