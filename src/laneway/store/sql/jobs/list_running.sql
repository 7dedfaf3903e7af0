-- Running jobs, newest first, one page by seq; the leases drive.
select v.* from laneway.lease l join laneway.jobs_as_text v on v.seq = l.seq
 where l.seq < %(before)s::bigint and (%(job_type)s::text is null or l.job_type = %(job_type)s::text)
   and (%(lane)s::text is null or l.lane = %(lane)s) and (%(workspace)s::text is null or l.workspace = %(workspace)s)
   and (%(tag)s::text is null or %(tag)s = any (v.tags)) and (%(since)s::timestamptz is null or v.created_at >= %(since)s)
 order by l.seq desc limit %(limit)s::integer
