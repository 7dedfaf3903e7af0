-- Revokes a token permanently; the first caller is recorded.
update laneway.tokens t set revoked_at = clock_timestamp(), revoked_by = %(by)s::text
  from laneway.principals p
 where t.id = %(id)s::uuid and p.id = t.principal_id and t.revoked_at is null
returning t.id, p.name, t.name, t.hint, t.permissions, t.lanes, t.created_at, t.created_by, t.expires_at,
          t.revoked_at, t.revoked_by, t.last_used_at, t.job_types
