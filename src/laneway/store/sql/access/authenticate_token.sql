-- Finds the principal and all grants of a valid token; records its use once a minute.
with found as materialized (
    select t.id, t.principal_id, p.name, p.kind, t.permissions, t.lanes, t.job_types, t.last_used_at,
           t.expires_at, extract(epoch from t.expires_at - clock_timestamp())::double precision as left_s,
           extract(epoch from t.expires_at - t.created_at)::double precision as life_s
      from laneway.tokens t join laneway.principals p on p.id = t.principal_id
     where t.digest = %(digest)s::bytea and t.revoked_at is null and p.disabled_at is null
       and (t.expires_at is null or t.expires_at > clock_timestamp())
), idle as materialized (
    -- A transaction that has the row locked records the use or revokes the token: do not wait for it.
    select h.id from found f
     cross join lateral (select t.id from laneway.tokens t where t.id = f.id
                         for no key update skip locked) h
     where f.last_used_at is null or f.last_used_at < clock_timestamp() - interval '1 minute'
), noted as (
    update laneway.tokens t set last_used_at = clock_timestamp() where t.id = any (array(select i.id from idle i))
)
select f.principal_id, f.name, f.kind, f.permissions, f.lanes, f.job_types, f.expires_at, f.left_s, f.life_s,
       r.permissions, g.scope, g.workspace, g.lanes, g.max_priority, g.max_queued, g.max_queued_bytes, g.max_types
  from found f
  left join laneway.role_grants g on g.principal_id = f.principal_id
  left join laneway.roles r on r.name = g.role
