-- Changes of the control plane, newest first; of one object if a name is given.
select h.id, h.at, h.by, h.kind, h.name, h.before::text, h.after::text
  from laneway.control_history h
 where h.kind = any (%(kinds)s::text[]) and (%(name)s::text is null or h.name = %(name)s::text)
   and h.id < %(before)s::bigint
 order by h.id desc limit %(limit)s::integer
