-- phase: pre
-- safe-with: 0.1.0
-- A process that dies takes all its jobs along, and one of them may be why. Where nobody knows which, none is charged:
-- a row here says how often that happened to a job, and with which worker the last time.

create table laneway.suspects (
    seq        bigint primary key,
    losses     integer not null check (losses > 0),
    lost_with  uuid not null,
    lost_at    timestamptz not null default clock_timestamp()
);
create index suspects_lost_with on laneway.suspects (lost_with);
