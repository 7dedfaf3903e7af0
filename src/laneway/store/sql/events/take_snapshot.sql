-- What is visible now, as a value: whoever reads on from it misses nothing that comes later.
select pg_current_snapshot()::text
