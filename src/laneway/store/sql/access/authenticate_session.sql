-- Finds the principal and all grants of a session that is neither expired nor idle; records its use once a minute.
with found as materialized (
    select s.digest, s.principal_id, p.name, p.kind, s.csrf, s.seen_at
      from laneway.sessions s join laneway.principals p on p.id = s.principal_id
     where s.digest = %(digest)s::bytea and p.disabled_at is null and s.expires_at > clock_timestamp()
       and s.seen_at > clock_timestamp() - make_interval(secs => %(idle_s)s::double precision)
), idle as materialized (
    select h.digest from found f
     cross join lateral (select s.digest from laneway.sessions s where s.digest = f.digest
                         for no key update skip locked) h
     where f.seen_at < clock_timestamp() - interval '1 minute'
), noted as (
    update laneway.sessions s set seen_at = clock_timestamp() where s.digest = any (array(select i.digest from idle i))
)
select f.principal_id, f.name, f.kind, f.csrf, r.permissions, g.scope, g.workspace, g.lanes,
       g.max_priority, g.max_queued, g.max_queued_bytes, g.max_types
  from found f
  left join laneway.role_grants g on g.principal_id = f.principal_id
  left join laneway.roles r on r.name = g.role
