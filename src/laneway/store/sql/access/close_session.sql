-- Ends a session permanently; returns its principal.
delete from laneway.sessions s using laneway.principals p
 where s.digest = %(digest)s::bytea and p.id = s.principal_id
returning p.id, p.name
