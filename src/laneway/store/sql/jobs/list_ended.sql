-- Jobs of one terminal status, newest first, one page by seq; the outcomes drive.
select v.* from laneway.outcome o join laneway.jobs_as_text v on v.seq = o.seq
 where o.status = %(status)s::text and o.seq < %(before)s::bigint
   and o.workspace = coalesce(%(workspace)s::text, o.workspace)
   and (%(job_type)s::text is null or o.job_type = %(job_type)s::text) and (%(lane)s::text is null or v.lane = %(lane)s)
   and (%(tag)s::text is null or %(tag)s = any (v.tags)) and (%(since)s::timestamptz is null or v.created_at >= %(since)s)
 order by o.seq desc limit %(limit)s::integer
