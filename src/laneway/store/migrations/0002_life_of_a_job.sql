-- phase: pre
-- safe-with: 0.1.0
-- The whole life of a job: analysis and approval, limits and keys, schedules, steps, finishing in the
-- caller's transaction, retention, and the history of every control change.

do $$
begin
    if exists (select from laneway.worker_lanes where name = 'analysis' and job_types <> '{}') then
        raise exception using errcode = 'LW001', message =
            'worker_lanes: from this version on the lane analysis takes the analyses of all types: '
            'rename your lane analysis, then migrate again';
    end if;
end $$;

-- Policies that a handler publishes ---------------------------------------------------------------

alter table laneway.job_types
    add constraint job_types_approval check (approval in ('never', 'always', 'below')),
    add column approval_below     numeric check (approval_below >= 0),
    add column approval_unit      text,
    add column two_person         boolean not null default false,
    add column approval_expires_s double precision not null default 86400 check (approval_expires_s > 0),
    add column max_age_s          double precision check (max_age_s > 0),
    add column keep_completed_s   double precision default 604800 check (keep_completed_s >= 0),
    add column keep_cancelled_s   double precision default 604800 check (keep_cancelled_s >= 0),
    add column keep_failed_s      double precision default 2592000 check (keep_failed_s >= 0),
    add column keep_count         integer check (keep_count >= 0);
comment on column laneway.job_types.approval_unit is 'a currency, or tokens: what approval_below counts';
comment on column laneway.job_types.keep_completed_s is 'null: for ever';

-- What waits, runs and ended ----------------------------------------------------------------------

alter table laneway.jobs add column concurrency_key text collate "C"
    check (octet_length(concurrency_key) between 1 and 512);

-- sealed: a decision let this job through, so a claim checks that nothing has changed since.
alter table laneway.ready   add column sealed boolean not null default false;
alter table laneway.delayed add column sealed boolean not null default false;
alter table laneway.lease   add column sealed boolean not null default false,
                            add column concurrency_key text collate "C",
                            -- Every limit the attempt holds now, as often as it holds it.
                            add column limits text[];

alter table laneway.attempts drop constraint attempts_outcome_check;
alter table laneway.attempts add constraint attempts_outcome_check check (outcome in
    ('failed', 'lost', 'stalled', 'released', 'snoozed', 'cancelled', 'analyzed')) not valid;
alter table laneway.attempts validate constraint attempts_outcome_check;

-- Jobs older than their type's max_age end when their row here comes due, wherever they are then.
create table laneway.deadlines (
    seq  bigint primary key,
    at   timestamptz not null
) with (autovacuum_vacuum_scale_factor = 0.02);
create index deadlines_at on laneway.deadlines (at);

-- Analysis and approval ---------------------------------------------------------------------------
-- `pending` is a row of ready, delayed or lease whose job_type is laneway.analysis_of(type): a
-- sub-queue of its own, in the lane `analysis`.
create index delayed_pending on laneway.delayed (seq) where job_type >= E'\x01' and job_type < E'\x02';
create index lease_pending on laneway.lease (seq) where job_type >= E'\x01' and job_type < E'\x02';

create table laneway.awaiting (
    seq         bigint primary key,
    job_type    text collate "C" not null,
    workspace   text collate "C" not null,
    rank        integer not null,
    attempt     integer not null default 0,
    since       timestamptz not null default clock_timestamp(),
    expires_at  timestamptz not null
);
create index awaiting_expiry on laneway.awaiting (expires_at);

create table laneway.approvals (
    seq          bigint primary key,
    -- By the submitter's handler, whatever is published of the type.
    asked        text check (asked in ('analysis', 'approval', 'both')),
    analysis     jsonb,
    cost         numeric,
    unit         text,
    analyzed_at  timestamptz,
    -- Of payload and analysis at the decision: what was approved is what runs.
    seal         text,
    decision     text check (decision in ('approved', 'automatic', 'rejected', 'expired')),
    decided_at   timestamptz,
    decided_by   text,
    comment      text
);

create table laneway.decisions (
    id          bigint generated always as identity primary key,
    seq         bigint not null,
    decision    text not null,
    decided_at  timestamptz not null,
    decided_by  text,
    comment     text,
    seal        text
);
create index decisions_job on laneway.decisions (seq);

-- Limits and keys ---------------------------------------------------------------------------------

create table laneway.limits (
    name            text collate "C" primary key
                    check (name ~ '^[a-z][a-z0-9_.-]*$' and octet_length(name) <= 63),
    max_concurrent  integer default 1 check (max_concurrent between 0 and 10000),
    rate_count      integer check (rate_count between 1 and 1000000),
    rate_period_s   double precision check (rate_period_s between 0.1 and 86400),
    scope           text not null default 'cluster' check (scope in ('cluster', 'host', 'process')),
    updated_at      timestamptz not null default clock_timestamp(),
    updated_by      text not null default current_user,
    check ((rate_count is null) = (rate_period_s is null))
);
comment on column laneway.limits.max_concurrent is '0: none, null: unbounded';

-- Changed only by the transaction that adds or removes the lease rows, like slot_usage.
create table laneway.limit_usage (
    limit_name  text collate "C" not null,
    worker_id   uuid not null,
    host        text not null,
    running     integer not null,
    primary key (limit_name, worker_id)
) with (fillfactor = 20);

-- Starts per slice of a rate's period. `site`: empty for the cluster, else a host or a worker.
create table laneway.limit_starts (
    limit_name  text collate "C" not null,
    site        text not null,
    slice       bigint not null,
    started     integer not null,
    primary key (limit_name, site, slice)
) with (fillfactor = 50);

-- Who runs for a key; and who waits for it, met once by a claim and put aside.
create table laneway.key_holders (
    workspace        text collate "C" not null,
    concurrency_key  text collate "C" not null,
    seq              bigint not null,
    primary key (workspace, concurrency_key)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

create table laneway.key_waiters (
    seq              bigint primary key,
    workspace        text collate "C" not null,
    concurrency_key  text collate "C" not null,
    rank             integer not null,
    job_type         text collate "C" not null,
    attempt          integer not null,
    retries          integer not null,
    sealed           boolean not null,
    ready_at         timestamptz not null
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index key_waiters_next on laneway.key_waiters (workspace, concurrency_key, job_type, rank, seq);

-- Leases that ended in a caller's transaction. Their slot, limits and key are given back a moment
-- later by the worker or the leader: the caller must not hold a lock that claims need.
create table laneway.self_finished (
    seq              bigint primary key,
    attempt          integer not null,
    lane             text collate "C" not null,
    worker_id        uuid not null,
    workspace        text collate "C" not null,
    concurrency_key  text collate "C",
    limits           text[]
);

-- What ended attempts held and is to be given back: slots by lane and worker, keys, limits by worker.
create type laneway.belongings as (
    lanes text[], workers uuid[], slots integer[],
    key_spaces text[], keys text[], key_seqs bigint[],
    limit_workers uuid[], limit_names text[], limit_counts integer[]
);

-- Durable steps -----------------------------------------------------------------------------------

create table laneway.steps (
    seq      bigint not null,
    name     text collate "C" not null check (octet_length(name) between 1 and 200),
    attempt  integer not null,
    result   jsonb,
    took_s   double precision,
    at       timestamptz not null default clock_timestamp(),
    primary key (seq, name)
);

-- Schedules ---------------------------------------------------------------------------------------

create table laneway.schedules (
    name             text collate "C" primary key
                     check (name ~ '^[a-z][a-z0-9_.-]*$' and octet_length(name) <= 63),
    job_type         text collate "C" not null check (octet_length(job_type) between 1 and 128),
    payload          jsonb not null default '{}' check (jsonb_typeof(payload) = 'object'),
    cron             text not null,
    timezone         text not null default 'UTC',
    missed           text not null default 'coalesce' check (missed in ('skip', 'coalesce', 'catch_up')),
    catch_up         integer not null default 10 check (catch_up between 1 and 1000),
    check_name       text,
    priority         integer check (priority between -32768 and 32767),
    max_retries      integer check (max_retries between 0 and 32767),
    concurrency_key  text,
    workspace        text not null default 'default',
    tags             text[] not null default '{}',
    enabled          boolean not null default true,
    error            text,
    created_at       timestamptz not null default clock_timestamp(),
    updated_at       timestamptz not null default clock_timestamp(),
    updated_by       text not null default current_user
);

-- Where the scheduler stands; apart, because it changes with every run and is nobody's decision.
create table laneway.schedule_state (
    name            text collate "C" primary key references laneway.schedules on delete cascade,
    next_at         timestamptz,
    last_at         timestamptz,
    check_failures  integer not null default 0,
    checking_by     uuid,
    checking_until  timestamptz,
    -- Somebody asked for a run now if the check holds; a worker that knows the check answers.
    asked_at        timestamptz,
    asked_by        text
);

-- One row per schedule and slot, whoever leads: its primary key makes a second job impossible.
create table laneway.schedule_slots (
    schedule  text collate "C" not null,
    slot      timestamptz not null,
    manual    boolean not null default false,
    outcome   text not null check (outcome in ('submitted', 'skipped', 'missed', 'failed')),
    job_id    uuid,
    note      text,
    at        timestamptz not null default clock_timestamp(),
    primary key (schedule, slot)
);

-- The control plane and its history ---------------------------------------------------------------

create table laneway.control_history (
    id      bigint generated always as identity primary key,
    at      timestamptz not null default clock_timestamp(),
    by      text not null,
    kind    text collate "C" not null check (kind in ('lane', 'limit', 'schedule', 'gate')),
    name    text collate "C" not null,
    before  jsonb,
    after   jsonb
);
create index control_history_object on laneway.control_history (kind, name, id desc);

create table laneway.frozen_lanes (
    lane         text collate "C" primary key,
    was_enabled  boolean not null,
    frozen_at    timestamptz not null default clock_timestamp(),
    frozen_by    text not null
);

-- Only so that triggers can name it: what it does stands in definitions/history.sql.
create function laneway.keep_history() returns trigger language plpgsql as $$ begin return null; end $$;

create trigger keep_history after insert or update or delete on laneway.worker_lanes
    for each row execute function laneway.keep_history('lane');
create trigger keep_history after insert or update or delete on laneway.limits
    for each row execute function laneway.keep_history('limit');
create trigger keep_history after insert or update or delete on laneway.schedules
    for each row execute function laneway.keep_history('schedule');
create trigger keep_history after update on laneway.control
    for each row execute function laneway.keep_history('gate');

create trigger stamp_limit before update on laneway.limits
    for each row execute function laneway.stamp_lane();
create trigger stamp_schedule before update on laneway.schedules
    for each row execute function laneway.stamp_lane();

create function laneway.bump_version() returns trigger language plpgsql as $$
begin
    update laneway.control set version = version + 1;
    return null;
end $$;

create trigger lock_control before insert or update or delete on laneway.limits
    for each statement execute function laneway.lock_control();
create trigger bump_version after insert or update or delete on laneway.limits
    for each statement execute function laneway.bump_version();

create or replace function laneway.check_lanes() returns trigger language plpgsql as $$
declare
    v_type text;
    v_lanes text;
    v_name text;
begin
    select t, string_agg(l.name, ', ' order by l.name) into v_type, v_lanes
      from laneway.worker_lanes l, unnest(l.job_types) t
     group by t having count(*) > 1 order by t limit 1;
    if found then
        raise exception using errcode = 'LW001', message =
            format('job_types: %s may be in one lane only, found in %s', v_type, v_lanes);
    end if;
    foreach v_name in array array['default', 'analysis'] loop
        if not exists (select from laneway.worker_lanes where name = v_name and job_types = '{}') then
            raise exception using errcode = 'LW001', message = format(
                'name: the lane %s must exist and lists no job types, it takes %s', v_name,
                case v_name when 'default' then 'every other type' else 'the analyses of all types' end);
        end if;
    end loop;
    update laneway.control set version = version + 1;
    return null;
end $$;

insert into laneway.worker_lanes (name, job_types, max_slots, poll_interval_ms, updated_by)
values ('analysis', '{}', 4, 1000, 'laneway')
on conflict (name) do nothing;
insert into laneway.limits (name, max_concurrent, updated_by)
values ('ollama', 1, 'laneway'), ('anthropic', 4, 'laneway'), ('openai', 8, 'laneway');
