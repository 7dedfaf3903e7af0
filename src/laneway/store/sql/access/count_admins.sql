-- How many enabled principals hold platform_admin everywhere and without bounds, in all and without a principal or grant.
-- Who is bound cannot take bounds off again. Behind lock_admins, as a later statement: it sees what those before changed.
select count(distinct g.principal_id),
       count(distinct g.principal_id) filter (where g.principal_id is distinct from %(principal)s::uuid
                                                and g.id is distinct from %(grant)s::uuid)
  from laneway.role_grants g
 where g.role = 'platform_admin' and g.scope = 'all' and g.lanes is null
   and coalesce(g.max_priority, g.max_queued, g.max_queued_bytes, g.max_types) is null
   and exists (select 1 from laneway.principals p where p.id = g.principal_id and p.disabled_at is null)
