-- Reads a token and locks it until the transaction ends.
select t.id, p.name, t.name, t.hint, t.permissions, t.lanes, t.created_at, t.created_by, t.expires_at,
       t.revoked_at, t.revoked_by, t.last_used_at, t.job_types
  from laneway.tokens t join laneway.principals p on p.id = t.principal_id
 where t.id = %(id)s::uuid for no key update of t
