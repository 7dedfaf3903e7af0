-- phase: pre
-- safe-with: 0.1.0
-- Who may do what through the server, what was done through any door, and which requests were
-- answered already.

create table laneway.principals (
    id           uuid primary key,
    name         text collate "C" not null unique check (octet_length(name) between 1 and 256),
    kind         text not null check (kind in ('person', 'service')),
    created_at   timestamptz not null default clock_timestamp(),
    created_by   text not null,
    disabled_at  timestamptz
);

create table laneway.roles (
    name         text collate "C" primary key
                 check (name ~ '^[a-z][a-z0-9_.-]*$' and octet_length(name) <= 63),
    permissions  text[] not null,
    is_seeded    boolean not null default false,
    updated_at   timestamptz not null default clock_timestamp(),
    updated_by   text not null
);

insert into laneway.roles (name, permissions, is_seeded, updated_by) values
    ('platform_admin', '{jobs:submit,jobs:read,jobs:cancel,jobs:approve,jobs:debug,workers:view,workers:manage,workers:claim,schedules:view,schedules:manage,metrics:read,access:manage,audit:read}', true, 'laneway'),
    ('operator', '{jobs:submit,jobs:read,jobs:cancel,jobs:approve,jobs:debug,workers:view,workers:manage,workers:claim,schedules:view,schedules:manage,metrics:read}', true, 'laneway'),
    ('approver', '{jobs:read,jobs:approve}', true, 'laneway'),
    ('submitter', '{jobs:submit,jobs:read,jobs:cancel}', true, 'laneway'),
    ('viewer', '{jobs:read,workers:view}', true, 'laneway'),
    ('remote_worker', '{workers:claim}', true, 'laneway');

-- scope own: jobs the principal submitted itself; workspace: those of one; all. lanes null: any lane.
create table laneway.role_grants (
    id            uuid primary key,
    principal_id  uuid not null references laneway.principals on delete cascade,
    role          text collate "C" not null references laneway.roles,
    scope         text not null check (scope in ('own', 'workspace', 'all')),
    workspace     text collate "C",
    lanes         text[] check (lanes <> '{}'),
    granted_at    timestamptz not null default clock_timestamp(),
    granted_by    text not null,
    check (scope <> 'workspace' or workspace is not null),
    check (scope <> 'all' or workspace is null)
);
create index role_grants_principal on laneway.role_grants (principal_id);
create index role_grants_role on laneway.role_grants (role);

-- A token is 256 random bits, shown once; its digest finds it again. permissions and lanes narrow
-- what the roles of its principal give, never widen it.
create table laneway.tokens (
    id            uuid primary key,
    principal_id  uuid not null references laneway.principals on delete cascade,
    name          text not null check (octet_length(name) between 1 and 256),
    hint          text not null,
    digest        bytea not null unique,
    permissions   text[],
    lanes         text[] check (lanes <> '{}'),
    created_at    timestamptz not null default clock_timestamp(),
    created_by    text not null,
    expires_at    timestamptz,
    revoked_at    timestamptz,
    revoked_by    text,
    last_used_at  timestamptz
);
create index tokens_principal on laneway.tokens (principal_id);

-- Of browsers, and the links that open one: each link works once.
create table laneway.sessions (
    digest        bytea primary key,
    principal_id  uuid not null references laneway.principals on delete cascade,
    csrf          text not null,
    created_at    timestamptz not null default clock_timestamp(),
    seen_at       timestamptz not null default clock_timestamp(),
    expires_at    timestamptz not null
);
create index sessions_principal on laneway.sessions (principal_id);
create index sessions_expiry on laneway.sessions (expires_at);

create table laneway.login_links (
    digest        bytea primary key,
    principal_id  uuid not null references laneway.principals on delete cascade,
    expires_at    timestamptz not null
);
create index login_links_expiry on laneway.login_links (expires_at);

-- Append-only: nobody is granted more than insert and select.
create table laneway.audit (
    id            bigint generated always as identity primary key,
    at            timestamptz not null default clock_timestamp(),
    actor         text not null,
    principal_id  uuid,
    door          text not null check (door in ('http', 'grpc', 'cli', 'mcp', 'python')),
    action        text collate "C" not null,
    kind          text collate "C" not null,
    name          text,
    workspace     text,
    outcome       text not null check (outcome in ('done', 'refused')),
    before        jsonb,
    after         jsonb,
    request_id    text,
    address       text
);
create index audit_object on laneway.audit (kind, name, id desc);
create index audit_actor on laneway.audit (actor, id desc);
create index audit_at on laneway.audit (at);

-- Answers to POST requests with an Idempotency-Key, for 24 hours.
create table laneway.idempotency (
    principal_id  uuid not null,
    key           text collate "C" not null check (octet_length(key) between 1 and 512),
    digest        bytea not null,
    status        smallint,
    body          text,
    location      text,
    made_at       timestamptz not null default clock_timestamp(),
    primary key (principal_id, key)
);
create index idempotency_age on laneway.idempotency (made_at);

-- A verb on many jobs that a server runs in the background: how far it has come.
create table laneway.bulk_runs (
    id            uuid primary key,
    principal_id  uuid not null,
    ordered_by    text not null,
    verb          text not null,
    state         text not null default 'running' check (state in ('running', 'done', 'failed')),
    done          bigint not null default 0,
    refused       jsonb not null default '{}',
    started_at    timestamptz not null default clock_timestamp(),
    updated_at    timestamptz not null default clock_timestamp()
);
create index bulk_runs_age on laneway.bulk_runs (started_at);

-- What a principal submitted itself, newest first. Jobs that programs submit by themselves name nobody.
create index jobs_created_by on laneway.jobs (created_by collate "C", seq) where created_by is not null;

-- Streams ------------------------------------------------------------------------------------------

-- What changed, of jobs that somebody watches. `xid`: ids become visible out of order, transactions
-- can be told apart by a snapshot. `state`: what changes of a job; the rest is in `jobs`. Without a seq:
-- many jobs at once, or the control plane. No index begins with the id: the newest event of a job that
-- has none would be looked for in all of them.
create table laneway.events (
    id          bigint generated always as identity,
    xid         xid8 not null default pg_current_xact_id(),
    at          timestamptz not null default clock_timestamp(),
    seq         bigint,
    name        text collate "C" not null check (name ~ '^[a-z]+\.[a-z_]+$'),
    workspace   text collate "C",
    lane        text collate "C",
    job_type    text collate "C",
    created_by  text,
    state       jsonb not null,
    primary key (xid, id)
);
create index events_job on laneway.events (seq, id) where seq is not null;

-- Only what stands here is logged: a job by its number, 0 for every job, -1 for the control plane.
-- since_id: logged without a gap from this event on; born: and this transaction. Until it is settled,
-- a transaction may still run that looked before the watch was there; all such are older than mark.
create table laneway.watches (
    seq       bigint primary key,
    until     timestamptz not null,
    since_id  bigint not null default nextval('laneway.events_id_seq'),
    born      xid8,
    mark      xid8,
    settled   boolean not null default false
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
create index watches_until on laneway.watches (until);

-- How much of the log is gone: events up to pruned_id, all of transactions before pruned_xid. All of
-- transactions before old_xid were visible at old_at.
create table laneway.event_log (
    singleton   boolean primary key default true check (singleton),
    pruned_id   bigint not null default 0,
    pruned_xid  xid8 not null default '0',
    old_at      timestamptz,
    old_xid     xid8,
    new_at      timestamptz,
    new_xid     xid8
);
insert into laneway.event_log default values;
