-- phase: pre
-- safe-with: 0.1.0
-- Claims enforce the approval policy in force; who waits for a limit takes turns; limits are held
-- outside of jobs; a policy is not loosened by another application.

-- The retries of a job when a claim sent it back for its approval; null: no claim did.
alter table laneway.approvals add column sent_back integer;

-- Who waits for a limit: what definitions/turns.sql says. lane_since: when its lane was last served, or began to
-- wait; used: its starts in this round; called_at: since when others leave it room.
create table laneway.limit_waiters (
    limit_name  text collate "C" not null,
    lane        text collate "C" not null,
    worker_id   uuid not null,
    kind        text collate "C" not null check (kind in ('claim', 'call')),
    site        text not null,
    rank        integer not null,
    used        integer not null default 0,
    lane_since  timestamptz not null,
    since       timestamptz not null,
    called_at   timestamptz,
    primary key (limit_name, lane, worker_id, kind)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

-- Limits held outside of jobs, each for a lease that its process renews. holder: the process, under which
-- limit_usage counts them. names: empty while it waits.
create table laneway.limit_holds (
    id           uuid primary key,
    holder       uuid not null,
    host         text not null,
    names        text[] not null default '{}',
    lease_until  timestamptz not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index limit_holds_holder on laneway.limit_holds (holder);
create index limit_holds_lapse on laneway.limit_holds (lease_until);

-- What each application published of a job type; job_types has what is in force.
create table laneway.type_publishers (
    job_type      text collate "C" not null,
    application   text collate "C" not null,
    record        jsonb not null,
    first_at      timestamptz not null default clock_timestamp(),
    published_at  timestamptz not null default clock_timestamp(),
    primary key (job_type, application)
);
