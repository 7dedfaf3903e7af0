-- Sequence numbers and ids of jobs that await an approval and match a filter, oldest first, one page by seq.
-- With one owner, only its jobs are read. A last row without an id: where the search stopped, and its submit time.
with walked as materialized (
    (select a.seq, true as is_here from laneway.awaiting a
      where %(owner)s::text is null and a.seq > %(after)s::bigint
        and (%(job_type)s::text is null or a.job_type = %(job_type)s::text)
        and (%(workspace)s::text is null or a.workspace = %(workspace)s::text)
      order by a.seq limit %(scan)s::integer)
    union all
    (select o.seq, coalesce((select true from laneway.awaiting a where a.seq = o.seq), false) from laneway.jobs o
      where o.created_by collate "C" = %(owner)s::text and o.seq > %(after)s::bigint
        -- Most jobs of one owner ended long ago.
        and o.seq >= (select coalesce((select a.seq from laneway.awaiting a order by a.seq limit 1), 9223372036854775807))
        and (%(job_type)s::text is null or o.job_type = %(job_type)s::text)
        and (%(workspace)s::text is null or o.workspace = %(workspace)s::text)
      order by o.seq limit 5 * %(scan)s::integer)
), found as materialized (
    select j.seq, j.id
      from (select w.seq from walked w where w.is_here order by w.seq) w
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
       and (%(flow)s::uuid is null or j.flow = %(flow)s::uuid)
       and (%(within)s::jsonb is null or laneway.is_within(%(within)s::jsonb, j.created_by, j.workspace, j.lane))
     order by w.seq limit %(limit)s::integer
)
select f.seq, f.id, null::timestamptz as looked_back_to from found f
union all
select s.seq, null, (select j.created_at from laneway.jobs j where j.seq = s.seq)
  from (select max(w.seq) as seq from walked w
        having count(*) >= case when %(owner)s::text is null then 1 else 5 end * %(scan)s::integer
           and (select count(*) from found) < %(limit)s::integer) s
 order by looked_back_to nulls first, seq
