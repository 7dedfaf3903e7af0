-- Keeps claims and other changes of lanes from committing until this transaction ends.
select pg_advisory_xact_lock(5577006791947779410)
