-- Serializes changes of platform_admin until the transaction ends.
select pg_advisory_xact_lock(hashtext('laneway.admins'))
