-- Audit entries that match all given filters, newest first, within the rows that one search reads.
-- The last row tells where the search stopped, if it did before the page was full.
with found as materialized (
    select a.* from (
        select w.* from laneway.audit w
         where w.id < %(before_id)s::bigint
           and (%(actor)s::text is null or w.actor = %(actor)s::text)
           and (%(kind)s::text is null or w.kind = %(kind)s::text)
           and (%(name)s::text is null or w.name = %(name)s::text or %(kind)s::text is null)
         order by w.id desc limit %(scan)s::integer) a
     where (%(door)s::text is null or a.door = %(door)s::text)
       and (%(action)s::text is null or a.action = %(action)s::text)
       and (%(name)s::text is null or a.name = %(name)s::text)
       and (%(workspace)s::text is null or a.workspace = %(workspace)s::text)
       and (%(outcome)s::text is null or a.outcome = %(outcome)s::text)
       and (%(since)s::timestamptz is null or a.at >= %(since)s::timestamptz)
       and (%(newer_than)s::double precision is null
            or a.at >= clock_timestamp() - make_interval(secs => %(newer_than)s::double precision))
     order by a.id desc limit %(limit)s::integer
)
select f.id, f.at, f.actor, f.principal_id, f.door, f.action, f.kind, f.name, f.workspace, f.outcome,
       f.before::text, f.after::text, f.request_id, f.address, false as is_stop
  from found f
union all
select s.id, s.at, null, null, null, null, null, null, null, null, null, null, null, null, true
  from (select w.id, w.at from laneway.audit w
         where (select count(*) from found) < %(limit)s::integer and w.id < %(before_id)s::bigint
           and (%(actor)s::text is null or w.actor = %(actor)s::text)
           and (%(kind)s::text is null or w.kind = %(kind)s::text)
           and (%(name)s::text is null or w.name = %(name)s::text or %(kind)s::text is null)
         order by w.id desc offset %(scan)s::integer - 1 limit 1) s
 -- No older entries are requested.
 where (%(since)s::timestamptz is null or s.at >= %(since)s::timestamptz)
   and (%(newer_than)s::double precision is null
        or s.at >= clock_timestamp() - make_interval(secs => %(newer_than)s::double precision))
 order by is_stop, id desc
