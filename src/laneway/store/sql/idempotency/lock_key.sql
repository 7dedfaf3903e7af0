-- Whether no other transaction handles a request with this key; if so, locks the key until the transaction ends.
select pg_try_advisory_xact_lock(hashtextextended(%(principal)s::uuid::text || ' ' || %(key)s::text, 5577006791947779412))
