-- phase: pre
-- safe-with: 0.1.0
-- Jobs that are unique for a period, also after the first has ended.

-- The job that took a key for a period, until its end. job_keys has the keys of jobs that have not ended; a submit
-- takes that first, so that two submits with one key wait for each other there.
create table laneway.unique_periods (
    workspace   text collate "C" not null,
    job_type    text collate "C" not null,
    unique_key  text collate "C" not null,
    seq         bigint not null,
    until       timestamptz not null,
    primary key (workspace, job_type, unique_key)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index unique_periods_seq on laneway.unique_periods (seq);
create index unique_periods_until on laneway.unique_periods (until);

-- The defaults of the type for its jobs: the period in seconds, and the arguments that form the key (null: all).
alter table laneway.job_types
    add column unique_for_s double precision check (unique_for_s > 0 and unique_for_s <= 31622400),
    add column unique_by text[] check (cardinality(unique_by) between 1 and 64);

-- The settings that jobs of one kind share in laneway.submit_batch. Replaces the type batch_kind.
create type laneway.submit_kind as (
    kind integer, job_type text, workspace text, priority integer, max_retries integer, run_at timestamptz,
    unique_key text, tags text[], created_by text, traceparent text, concurrency_key text, needs text,
    max_age double precision, is_gated boolean, problem text, unique_for double precision, is_unique boolean,
    unique_by text[], arguments jsonb
);
