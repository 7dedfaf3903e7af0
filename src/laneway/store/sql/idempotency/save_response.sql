-- Stores the response to a request in the request's transaction; replaces one that is a day old.
insert into laneway.idempotency (principal_id, key, digest, status, body, location)
values (%(principal)s::uuid, %(key)s::text, %(digest)s::bytea, %(status)s::smallint, %(body)s::text, %(location)s::text)
on conflict (principal_id, key) do update
   set digest = excluded.digest, status = excluded.status, body = excluded.body, location = excluded.location,
       made_at = clock_timestamp()
