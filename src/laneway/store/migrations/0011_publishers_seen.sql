-- phase: pre
-- safe-with: 0.1.0
-- Whether an application still publishes a job type, so that one that is gone can be named.

-- When the application last said that it has the type; its workers repeat it every hour.
alter table laneway.type_publishers add column seen_at timestamptz not null default now();
