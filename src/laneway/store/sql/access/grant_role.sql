-- Gives a principal a role, unless it has the same already; its row is to be locked before.
insert into laneway.role_grants (id, principal_id, role, scope, workspace, lanes, granted_by)
select %(id)s::uuid, %(principal)s::uuid, %(role)s::text, %(scope)s::text, %(workspace)s::text, %(lanes)s::text[],
       %(by)s::text
 where not exists (
    select from laneway.role_grants g
     where g.principal_id = %(principal)s::uuid and g.role = %(role)s::text and g.scope = %(scope)s::text
       and g.workspace is not distinct from %(workspace)s::text
       and g.lanes is not distinct from %(lanes)s::text[])
returning id, (select p.name from laneway.principals p where p.id = %(principal)s::uuid), role, scope, workspace,
          lanes, granted_at, granted_by
