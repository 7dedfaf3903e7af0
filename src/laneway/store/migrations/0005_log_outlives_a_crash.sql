-- phase: pre
-- safe-with: 0.1.0
-- Numbers of transactions that did not reach the disk are given out again after a crash of PostgreSQL. So who
-- reads the log stands at a transaction of which it has an event, and a watch is born with one of its own.

update laneway.watches set born = pg_current_xact_id() where born is null;
alter table laneway.watches
    alter column born set default pg_current_xact_id(),
    alter column born set not null;
