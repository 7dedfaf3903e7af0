-- Disables or enables a principal; either way its sessions and links are deleted.
with gone_sessions as (
    delete from laneway.sessions s where s.principal_id = %(id)s::uuid
), gone_links as (
    delete from laneway.login_links l where l.principal_id = %(id)s::uuid
)
update laneway.principals p
   set disabled_at = case when %(enabled)s::boolean then null else clock_timestamp() end
 where p.id = %(id)s::uuid
returning p.id, p.name, p.kind, p.created_at, p.created_by, p.disabled_at
