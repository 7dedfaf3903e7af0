-- Stores the digest of a login link and its expiry by the database's clock.
insert into laneway.login_links (digest, principal_id, expires_at)
values (%(digest)s::bytea, %(principal)s::uuid,
        clock_timestamp() + make_interval(secs => %(life_s)s::double precision))
