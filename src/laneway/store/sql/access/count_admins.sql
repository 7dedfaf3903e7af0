-- Counts enabled principals with unbounded platform_admin everywhere, in all and without one principal or grant.
-- Bounded admins do not count: they cannot remove bounds. Run it after lock_admins, to see earlier committed changes.
select count(distinct g.principal_id),
       count(distinct g.principal_id) filter (where g.principal_id is distinct from %(principal)s::uuid
                                                and g.id is distinct from %(grant)s::uuid)
  from laneway.role_grants g
 where g.role = 'platform_admin' and g.scope = 'all' and g.lanes is null
   and coalesce(g.max_priority, g.max_queued, g.max_queued_bytes, g.max_types) is null
   and exists (select 1 from laneway.principals p where p.id = g.principal_id and p.disabled_at is null)
