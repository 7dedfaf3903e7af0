-- Keeps the digest of a link that opens one session, and its end by the clock of the database.
insert into laneway.login_links (digest, principal_id, expires_at)
values (%(digest)s::bytea, %(principal)s::uuid,
        clock_timestamp() + make_interval(secs => %(life_s)s::double precision))
