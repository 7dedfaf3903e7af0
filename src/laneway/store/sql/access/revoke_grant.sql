-- Revokes a grant; returns it.
delete from laneway.role_grants g using laneway.principals p
 where g.id = %(id)s::uuid and p.id = g.principal_id
returning g.id, p.name, g.role, g.scope, g.workspace, g.lanes, g.granted_at, g.granted_by,
          g.max_priority, g.max_queued, g.max_queued_bytes, g.max_types
