-- Jobs of any status, newest first, one page by seq; the jobs drive.
select v.* from laneway.jobs_as_text v
 where v.seq < %(before)s::bigint and (%(job_type)s::text is null or v.job_type = %(job_type)s::text)
   and (%(lane)s::text is null or v.lane = %(lane)s) and (%(workspace)s::text is null or v.workspace = %(workspace)s)
   and (%(tag)s::text is null or %(tag)s = any (v.tags)) and (%(since)s::timestamptz is null or v.created_at >= %(since)s)
 order by v.seq desc limit %(limit)s::integer
