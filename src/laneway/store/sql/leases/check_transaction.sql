-- True only in the named transaction: a connection with autocommit has ended it already.
select pg_current_xact_id_if_assigned()::text is not distinct from %(xid)s::text
