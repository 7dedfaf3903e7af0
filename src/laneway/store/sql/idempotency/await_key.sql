-- Returns when nobody else is answering a request with this key; held until the transaction ends.
select pg_advisory_xact_lock(hashtextextended(%(principal)s::uuid::text || ' ' || %(key)s::text, 5577006791947779412))
