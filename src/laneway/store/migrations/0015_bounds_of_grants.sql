-- phase: pre
-- safe-with: 0.1.0
-- How much a grant allows, and what of each principal waits: definitions/quotas.sql.

-- Null: what is usual for the role (domain/bounds.py).
alter table laneway.role_grants
    add column max_priority     integer check (max_priority between -32768 and 32767),
    add column max_queued       integer check (max_queued >= 0),
    add column max_queued_bytes bigint check (max_queued_bytes >= 0),
    add column max_types        integer check (max_types >= 0);

-- Jobs that a principal submitted and that may still wait. Rows of jobs that have started or ended are removed when the
-- principal is at its bound, and by retention, so no claim pays for it.
create table laneway.queued_by (
    principal_id uuid not null,
    seq          bigint not null,
    bytes        bigint not null,
    primary key (principal_id, seq)
);

-- Their number and bytes: the sum over a principal's counters. Several, so that submits do not wait for each other; each
-- moves like the counters of slots. Slot 0 is what sweeps take off, and says when and how far the last one looked.
create table laneway.queue_usage (
    principal_id uuid not null,
    slot         smallint not null,
    place        bigint not null default 0,
    changes      smallint not null default 0,
    jobs         bigint not null default 0,
    bytes        bigint not null default 0,
    swept_at     timestamptz,
    swept_to     bigint not null default 0,
    pause_s      real not null default 1,
    primary key (principal_id, slot, place)
) with (fillfactor = 50);

-- Job types that nobody had published when a principal submitted them.
create table laneway.unpublished_types (
    principal_id uuid not null,
    job_type     text collate "C" not null,
    used_at      timestamptz not null default clock_timestamp(),
    primary key (principal_id, job_type)
);
