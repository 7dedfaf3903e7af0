-- phase: pre
-- safe-with: 0.1.0
-- Flows: jobs that come after other jobs. A parent is a job that another job, its child, comes after.

-- Jobs that were submitted together. The sums are of all folded tallies.
create table laneway.flows (
    seq         bigint generated always as identity primary key,
    id          uuid not null,
    name        text not null check (octet_length(name) between 1 and 128),
    workspace   text collate "C" not null default 'default',
    tags        text[],
    created_at  timestamptz not null default clock_timestamp(),
    created_by  text,
    jobs        integer not null default 0,
    edges       integer not null default 0,
    completed   integer not null default 0,
    failed      integer not null default 0,
    cancelled   integer not null default 0,
    -- When the last of them ended.
    ended_at    timestamptz
) with (fillfactor = 70);
create unique index flows_id on laneway.flows (id);
create index flows_workspace on laneway.flows (workspace, seq desc);

-- Changes of those sums, appended by submits, ends and retries, so that no two ends of a flow lock one row.
create table laneway.flow_tallies (
    id         bigint generated always as identity primary key,
    flow       bigint not null,
    jobs       integer not null default 0,
    edges      integer not null default 0,
    completed  integer not null default 0,
    failed     integer not null default 0,
    cancelled  integer not null default 0,
    ended_at   timestamptz
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index flow_tallies_flow on laneway.flow_tallies (flow);

alter table laneway.jobs add column flow bigint;
-- Copied by the claim, so that the end of an attempt need not read the job.
alter table laneway.lease add column flow bigint;

-- Facts that never change, of jobs with a flow, a parent or an owner. A sub-job has an owner: the job whose handler runs it
-- and waits for it.
create table laneway.links (
    seq            bigint primary key,
    flow           bigint,
    name           text check (octet_length(name) between 1 and 128),
    owner          bigint,
    owner_wait     text,
    parents        bigint[],
    after_failure  text collate "C" not null default 'cancel' check (after_failure in ('cancel', 'run', 'hold'))
);
create index links_flow on laneway.links (flow, seq) where flow is not null;
create index links_owner on laneway.links (owner, seq) where owner is not null;

-- Edges whose parent has not satisfied them yet. A row is deleted once, so an edge counts once, however often its parent
-- is retried. `rule` is the child's after_failure; the edge from a sub-job to its owner has `run`.
create table laneway.open_edges (
    parent  bigint not null,
    child   bigint not null,
    rule    text collate "C" not null check (rule in ('cancel', 'run', 'hold')),
    primary key (parent, child)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index open_edges_child on laneway.open_edges (child, parent);

-- The open edges of a child, and those that its arrivals have not subtracted yet. No row: none.
create table laneway.countdowns (
    seq      bigint primary key,
    missing  integer not null check (missing > 0)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- Jobs with status `waiting`: for other jobs, or for what their handler asked for. wake_at: the end of a sleep, or a
-- timeout.
create table laneway.waiting (
    seq       bigint primary key,
    job_type  text collate "C" not null,
    rank      integer not null,
    attempt   integer not null default 0,
    retries   integer not null default 0,
    sealed    boolean not null default false,
    reason    text collate "C" not null check (reason in ('jobs', 'sub_jobs', 'event', 'sleep')),
    name      text,
    wake_at   timestamptz check (isfinite(wake_at)),
    since     timestamptz not null default clock_timestamp()
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index waiting_wake on laneway.waiting (wake_at) where wake_at is not null;

-- Work that the end of a job left to laneway.advance, because another transaction had a row locked or because it is too
-- much for one transaction. `counted`: n more edges of a child are satisfied. `ended`: a job ended, and its edges after
-- that child are still to be followed. `cancelled`: a job was cancelled, and its sub-jobs after that one still are to be.
create table laneway.arrivals (
    id      bigint generated always as identity primary key,
    kind    text collate "C" not null check (kind in ('counted', 'ended', 'cancelled')),
    seq     bigint not null,
    n       integer not null default 0,
    beyond  bigint not null default 0,
    by      text,
    reason  text
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
