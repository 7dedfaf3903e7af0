-- Uses up a login link and opens its session; of two concurrent calls one succeeds.
with used as (
    delete from laneway.login_links l where l.digest = %(link)s::bytea
    returning l.principal_id, l.expires_at
), replaced as (
    delete from laneway.sessions s where s.digest = %(replaces)s::bytea
)
insert into laneway.sessions (digest, principal_id, csrf, expires_at)
select %(digest)s::bytea, u.principal_id, %(csrf)s::text,
       clock_timestamp() + make_interval(secs => %(life_s)s::double precision)
  from used u join laneway.principals p on p.id = u.principal_id
 where u.expires_at > clock_timestamp() and p.disabled_at is null
returning principal_id
