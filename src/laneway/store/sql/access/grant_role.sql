-- Grants a role to a principal, or changes the bounds of that grant; returns the previous bounds.
-- Bounds that are not given stay; those named in `cleared` return to the defaults. The caller has locked the principal.
with given as (
    select %(principal)s::uuid as principal_id, %(role)s::text as role, %(scope)s::text as scope,
           %(workspace)s::text as workspace, %(lanes)s::text[] as lanes, %(max_priority)s::integer as max_priority,
           %(max_queued)s::integer as max_queued, %(max_queued_bytes)s::bigint as max_queued_bytes,
           %(max_types)s::integer as max_types
), known as materialized (
    select g.* from laneway.role_grants g join given n
        on g.principal_id = n.principal_id and g.role = n.role and g.scope = n.scope
       and g.workspace is not distinct from n.workspace and g.lanes is not distinct from n.lanes
     order by g.id limit 1
), wanted as (
    select case when 'max_priority' <> all (c.names) then coalesce(n.max_priority, k.max_priority) end as max_priority,
           case when 'max_queued' <> all (c.names) then coalesce(n.max_queued, k.max_queued) end as max_queued,
           case when 'max_queued_bytes' <> all (c.names) then coalesce(n.max_queued_bytes, k.max_queued_bytes) end
               as max_queued_bytes,
           case when 'max_types' <> all (c.names) then coalesce(n.max_types, k.max_types) end as max_types
      from known k, given n, (select %(cleared)s::text[] as names) c
), changed as (
    update laneway.role_grants g
       set max_priority = n.max_priority, max_queued = n.max_queued, max_queued_bytes = n.max_queued_bytes,
           max_types = n.max_types, granted_at = clock_timestamp(), granted_by = %(by)s::text
      from known k, wanted n
     where g.id = k.id
       and (k.max_priority, k.max_queued, k.max_queued_bytes, k.max_types)
           is distinct from (n.max_priority, n.max_queued, n.max_queued_bytes, n.max_types)
    returning g.*, array[k.max_priority, k.max_queued, k.max_queued_bytes, k.max_types]::bigint[] as was
), made as (
    insert into laneway.role_grants (id, principal_id, role, scope, workspace, lanes, granted_by, max_priority, max_queued,
                                     max_queued_bytes, max_types)
    select %(id)s::uuid, n.principal_id, n.role, n.scope, n.workspace, n.lanes, %(by)s::text, n.max_priority, n.max_queued,
           n.max_queued_bytes, n.max_types
      from given n where not exists (select from known)
    returning *, null::bigint[] as was
)
select w.id, p.name, w.role, w.scope, w.workspace, w.lanes, w.granted_at, w.granted_by, w.max_priority, w.max_queued,
       w.max_queued_bytes, w.max_types, w.was
  from (select * from changed union all select * from made) w join laneway.principals p on p.id = w.principal_id
