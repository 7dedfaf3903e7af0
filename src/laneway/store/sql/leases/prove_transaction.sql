-- True only in the transaction named: on a connection that commits each statement it is over by now.
select pg_current_xact_id_if_assigned()::text is not distinct from %(xid)s::text
