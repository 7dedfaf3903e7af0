-- phase: pre
-- safe-with: 0.1.0
-- End hooks: handlers that applications publish for the ends of jobs.

-- An end that matches submits a job of the type `name`, in its own transaction. The newest publication counts.
create table laneway.end_hooks (
    name          text collate "C" primary key,
    application   text collate "C" not null,
    -- Null: all, except the types of end hooks.
    job_types     text[] check (cardinality(job_types) > 0),
    statuses      text[] not null check (cardinality(statuses) > 0 and statuses <@ '{completed,failed,cancelled}'),
    -- Null: all.
    workspaces    text[] check (cardinality(workspaces) > 0),
    published_at  timestamptz not null default clock_timestamp()
);
