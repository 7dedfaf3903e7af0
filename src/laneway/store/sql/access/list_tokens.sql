-- Tokens without their digests, oldest first, after the given one.
select t.id, p.name, t.name, t.hint, t.permissions, t.lanes, t.created_at, t.created_by, t.expires_at,
       t.revoked_at, t.revoked_by, t.last_used_at, t.job_types
  from laneway.tokens t join laneway.principals p on p.id = t.principal_id
 where (%(principal)s::text is null or p.name = %(principal)s::text)
   and (%(after)s::uuid is null or t.id > %(after)s::uuid)
 order by t.id limit %(limit)s::integer
