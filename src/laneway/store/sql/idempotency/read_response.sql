-- The response to a request with this key within the last day.
select digest, status, body, location
  from laneway.idempotency
 where principal_id = %(principal)s::uuid and key = %(key)s::text
   and made_at > clock_timestamp() - interval '24 hours'
