-- Waiting jobs, newest first, one page by seq; the waiting tables drive, each read from its newest row.
select v.* from (
    (select w.seq from laneway.ready w
      where w.seq < %(before)s::bigint and (%(job_type)s::text is null or w.job_type = %(job_type)s::text)
      order by w.seq desc)
    union all
    (select d.seq from laneway.delayed d
      where d.seq < %(before)s::bigint and (%(job_type)s::text is null or d.job_type = %(job_type)s::text)
      order by d.seq desc)
    order by seq desc) k
 cross join lateral (select t.* from laneway.jobs_as_text t where t.seq = k.seq offset 0) v
 where (%(lane)s::text is null or v.lane = %(lane)s) and (%(workspace)s::text is null or v.workspace = %(workspace)s)
   and (%(tag)s::text is null or %(tag)s = any (v.tags)) and (%(since)s::timestamptz is null or v.created_at >= %(since)s)
 order by k.seq desc limit %(limit)s::integer
