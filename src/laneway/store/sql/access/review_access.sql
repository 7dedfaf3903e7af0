-- Finds the principals and grants of the valid ones among tokens and sessions, without recording a use.
select k.digest, p.id, p.name, p.kind, k.permissions, k.lanes, k.job_types, k.expires_at, k.left_s, k.life_s,
       r.permissions, g.scope, g.workspace, g.lanes, g.max_priority, g.max_queued, g.max_queued_bytes, g.max_types
  from (select t.digest, t.principal_id, t.permissions, t.lanes, t.job_types, t.expires_at,
               extract(epoch from t.expires_at - clock_timestamp())::double precision as left_s,
               extract(epoch from t.expires_at - t.created_at)::double precision as life_s
          from laneway.tokens t
         where t.digest = any (%(digests)s::bytea[]) and t.revoked_at is null
           and (t.expires_at is null or t.expires_at > clock_timestamp())
        union all
        select s.digest, s.principal_id, null, null, null, null, null, null from laneway.sessions s
         where s.digest = any (%(digests)s::bytea[]) and s.expires_at > clock_timestamp()
           and s.seen_at > clock_timestamp() - make_interval(secs => %(idle_s)s::double precision)) k
  join laneway.principals p on p.id = k.principal_id and p.disabled_at is null
  left join laneway.role_grants g on g.principal_id = p.id
  left join laneway.roles r on r.name = g.role
