-- Forgets a request that was begun and not answered; an answer stays.
delete from laneway.idempotency
 where principal_id = %(principal)s::uuid and key = %(key)s::text and status is null
