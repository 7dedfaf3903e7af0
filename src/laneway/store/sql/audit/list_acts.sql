-- Acts that match all that is given, newest first.
select a.id, a.at, a.actor, a.principal_id, a.door, a.action, a.kind, a.name, a.workspace, a.outcome,
       a.before::text, a.after::text, a.request_id, a.address
  from laneway.audit a
 where a.id < %(before_id)s::bigint
   and (%(actor)s::text is null or a.actor = %(actor)s::text)
   and (%(door)s::text is null or a.door = %(door)s::text)
   and (%(action)s::text is null or a.action = %(action)s::text)
   and (%(kind)s::text is null or a.kind = %(kind)s::text)
   and (%(name)s::text is null or a.name = %(name)s::text)
   and (%(workspace)s::text is null or a.workspace = %(workspace)s::text)
   and (%(outcome)s::text is null or a.outcome = %(outcome)s::text)
   and (%(since)s::timestamptz is null or a.at >= %(since)s::timestamptz)
   and (%(newer_than)s::double precision is null
        or a.at >= clock_timestamp() - make_interval(secs => %(newer_than)s::double precision))
 order by a.id desc limit %(limit)s::integer
