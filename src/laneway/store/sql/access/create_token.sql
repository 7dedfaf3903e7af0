-- Stores a new token's digest and its expiry by the database's clock.
insert into laneway.tokens (id, principal_id, name, hint, digest, permissions, lanes, created_by, expires_at,
                            job_types)
values (%(id)s::uuid, %(principal)s::uuid, %(name)s::text, %(hint)s::text, %(digest)s::bytea,
        %(permissions)s::text[], %(lanes)s::text[], %(by)s::text,
        clock_timestamp() + make_interval(secs => %(life_s)s::double precision), %(job_types)s::text[])
returning id, (select p.name from laneway.principals p where p.id = %(principal)s::uuid), name, hint, permissions,
          lanes, created_at, created_by, expires_at, revoked_at, revoked_by, last_used_at, job_types
