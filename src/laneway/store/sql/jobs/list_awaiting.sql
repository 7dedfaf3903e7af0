-- Jobs that await an approval and match a filter, oldest first, one page by seq; of one owner, nobody else's are read.
select v.*
  from (
    select j.seq
      from ((select a.seq from laneway.awaiting a
              where %(owner)s::text is null and a.seq > %(after)s::bigint
                and (%(job_type)s::text is null or a.job_type = %(job_type)s::text)
                and (%(workspace)s::text is null or a.workspace = %(workspace)s::text)
              order by a.seq)
            union all
            (select o.seq from laneway.jobs o
              where o.created_by collate "C" = %(owner)s::text and o.seq > %(after)s::bigint
                and (%(job_type)s::text is null or o.job_type = %(job_type)s::text)
                and (%(workspace)s::text is null or o.workspace = %(workspace)s::text)
                and (select true from laneway.awaiting a where a.seq = o.seq)
              order by o.seq)
            order by seq) w
     cross join lateral (select t.* from laneway.jobs_view t where t.seq = w.seq offset 0) j
     where (%(lane)s::text is null or j.lane = %(lane)s::text) and (%(tag)s::text is null or %(tag)s::text = any (j.tags))
       and (%(since)s::timestamptz is null or j.created_at >= %(since)s::timestamptz)
       and (%(until)s::timestamptz is null or j.created_at < %(until)s::timestamptz)
       and (%(older_than)s::double precision is null
            or j.created_at < clock_timestamp() - make_interval(secs => %(older_than)s::double precision))
       and (%(newer_than)s::double precision is null
            or j.created_at >= clock_timestamp() - make_interval(secs => %(newer_than)s::double precision))
       and (%(worker)s::text is null or j.worker = %(worker)s::text or j.claimed_by::text = %(worker)s::text)
       and (%(q)s::text is null or laneway.mentions(%(q)s::text, j.id, j.job_type, null, j.payload))
       and (%(max_cost)s::numeric is null or laneway.costs_at_most(j.seq, %(max_cost)s::numeric, %(unit)s::text))
       and (%(within)s::jsonb is null or laneway.is_within(%(within)s::jsonb, j.created_by, j.workspace, j.lane))
     order by w.seq limit %(limit)s::integer) m
 cross join lateral (select t.* from laneway.jobs_as_text t where t.seq = m.seq offset 0) v
 order by m.seq
