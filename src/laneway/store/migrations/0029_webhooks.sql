-- phase: pre
-- safe-with: 0.1.0
-- Webhooks: URLs that are sent the ends of jobs.

create table laneway.webhooks (
    name             text collate "C" primary key
                     check (name ~ '^[a-z][a-z0-9_.-]*$' and octet_length(name) <= 63),
    url              text not null check (octet_length(url) <= 2048),
    events           text[] not null
                     check (cardinality(events) > 0 and events <@ '{job.completed,job.failed,job.cancelled}'),
    -- Empty: all.
    job_types        text[] not null default '{}',
    workspaces       text[] not null default '{}',
    lanes            text[] not null default '{}',
    tags             text[] not null default '{}',
    enabled          boolean not null default true,
    timeout_s        integer not null default 15 check (timeout_s between 1 and 120),
    max_retries      integer not null default 10 check (max_retries between 0 and 50),
    secret           text not null,
    -- Signs too until then.
    previous_secret  text,
    previous_until   timestamptz,
    created_at       timestamptz not null default clock_timestamp(),
    created_by       text not null,
    updated_at       timestamptz not null default clock_timestamp(),
    updated_by       text not null,
    check ((previous_secret is null) = (previous_until is null))
);

-- An enabled webhook is also an end hook, kept by a trigger: ends read one table. Its name begins with a control character,
-- which no job type does, and its application is empty.
alter table laneway.end_hooks
    add column webhook text collate "C" unique references laneway.webhooks on delete cascade,
    -- Of webhooks. Null: all.
    add column lanes text[] check (cardinality(lanes) > 0),
    add column tags text[] check (cardinality(tags) > 0),
    add check ((webhook is null) = (application <> ''));

-- Since the first webhook, workers and servers run deliveries. A change of this row makes workers read it.
alter table laneway.control add column has_webhooks boolean not null default false;
