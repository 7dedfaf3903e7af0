-- Deletes a request that was begun without a response; a response stays.
delete from laneway.idempotency
 where principal_id = %(principal)s::uuid and key = %(key)s::text and status is null
