-- Where a delivery goes, and the secrets that sign it.
select url, enabled, timeout_s,
       array_remove(array[secret, case when previous_until > clock_timestamp() then previous_secret end], null), id
  from laneway.webhooks
 where name = %(name)s::text
