-- phase: pre
-- safe-with: 0.1.0
-- Waits of handlers: sub-jobs, events and sleeps, remembered by name.

-- Not validated, which would read the whole table under a lock: the rule was narrower before.
alter table laneway.attempts drop constraint attempts_outcome_check;
alter table laneway.attempts add constraint attempts_outcome_check check (outcome in
    ('failed', 'lost', 'stalled', 'released', 'snoozed', 'cancelled', 'analyzed', 'waited')) not valid;

-- One row per wait of a job. It stays after the wait, so that the handler meets it done when it runs again.
create table laneway.handler_waits (
    seq        bigint not null,
    name       text collate "C" not null,
    kind       text not null check (kind in ('sub_jobs', 'event', 'sleep')),
    -- The order in which the handler first asked, from 1.
    position   integer not null,
    workspace  text collate "C" not null,
    -- Of sub_jobs: the jobs in order, and how many the handler gave.
    subjects   bigint[],
    total      integer,
    event      text collate "C",
    key        text collate "C",
    -- The end of a sleep, the timeout of an event.
    until      timestamptz,
    -- The event that it took, and its payload.
    event_id   bigint,
    result     jsonb,
    -- Null: the job still waits. An event without event_id timed out.
    done_at    timestamptz,
    asked_at   timestamptz not null,
    primary key (seq, name)
) with (autovacuum_vacuum_scale_factor = 0.02);
create index handler_waits_event on laneway.handler_waits (workspace, event, key)
    where kind = 'event' and done_at is null;

create table laneway.sent_events (
    id          bigint generated always as identity primary key,
    workspace   text collate "C" not null,
    name        text collate "C" not null,
    key         text collate "C" not null,
    payload     jsonb not null,
    sent_at     timestamptz not null,
    sent_by     text,
    expires_at  timestamptz not null
);
create index sent_events_key on laneway.sent_events (workspace, name, key, id);
create index sent_events_expires on laneway.sent_events (expires_at);

-- Looks that follow the commit of an event, or of a job that began to wait for one: neither may miss the other.
create table laneway.event_checks (
    id        bigint generated always as identity primary key,
    seq       bigint,
    event_id  bigint,
    check ((seq is null) <> (event_id is null))
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- An attempt that ends because its handler waits.
create type laneway.suspended_job as (
    seq bigint, job_type text, rank integer, attempt integer, retries integer, sealed boolean, name text
);
