-- Lets changes of who is platform_admin take turns, until the transaction ends.
select pg_advisory_xact_lock(hashtext('laneway.admins'))
