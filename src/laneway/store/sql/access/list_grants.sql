-- Grants, oldest first, after the given one.
select g.id, p.name, g.role, g.scope, g.workspace, g.lanes, g.granted_at, g.granted_by,
       g.max_priority, g.max_queued, g.max_queued_bytes, g.max_types
  from laneway.role_grants g join laneway.principals p on p.id = g.principal_id
 where (%(principal)s::text is null or p.name = %(principal)s::text)
   and (%(role)s::text is null or g.role = %(role)s::text)
   and (%(after)s::uuid is null or g.id > %(after)s::uuid)
 order by g.id limit %(limit)s::integer
