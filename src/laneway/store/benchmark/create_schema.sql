create schema laneway_bench;
create table laneway_bench.run (started_at timestamptz not null default clock_timestamp());
insert into laneway_bench.run default values;
-- The columns, indexes and storage of Laneway's own tables, without its triggers and functions.
create table laneway_bench.jobs (like laneway.jobs including defaults including indexes including storage);
create table laneway_bench.ready (like laneway.ready including defaults including indexes including storage);
create table laneway_bench.outcome (like laneway.outcome including defaults including indexes including storage);
