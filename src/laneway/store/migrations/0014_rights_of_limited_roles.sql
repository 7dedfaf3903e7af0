-- phase: pre
-- safe-with: 0.1.0
-- Limited database roles write through functions only. A function is called only by roles that it is
-- granted to: definitions/zz_public_rights.sql.

-- Who wrote the schedule of a job as it was when the job was made: none of them is the second person who approves it.
-- Null: the writer of the payload or of the job type is not known. Kept as long as the job: a schedule, its slots and its
-- history may be deleted before.
create table laneway.schedule_jobs (
    seq      bigint primary key,
    schedule text collate "C" not null,
    writers  text[]
);
-- Jobs of earlier runs by hand. Those that a schedule submitted for itself carry its name.
insert into laneway.schedule_jobs (seq, schedule, writers)
select j.seq, s.schedule, null from laneway.schedule_slots s join laneway.jobs j on j.id = s.job_id
 where s.manual
on conflict do nothing;

-- What jobs of a batch have in common: definitions/submit_batch.sql.
create type laneway.batch_kind as (
    kind integer, job_type text, workspace text, priority integer, max_retries integer, run_at timestamptz,
    unique_key text, tags text[], created_by text, traceparent text, concurrency_key text, needs text,
    max_age double precision, is_gated boolean, problem text
);
