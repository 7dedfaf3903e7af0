-- phase: pre
-- safe-with: 0.1.0
-- Limits that remote attempts hold for a call, so that any server gives them back after the longest hold.

-- One row for each time that an attempt holds a limit. until: when it is given back for the attempt. Rows of attempts
-- that ended go when they are due.
create table laneway.call_holds (
    id          uuid primary key default gen_random_uuid(),
    seq         bigint not null,
    attempt     integer not null,
    limit_name  text collate "C" not null,
    until       timestamptz not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index call_holds_attempt on laneway.call_holds (seq, attempt);
create index call_holds_until on laneway.call_holds (until);
