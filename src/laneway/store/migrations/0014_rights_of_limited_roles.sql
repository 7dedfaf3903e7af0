-- phase: pre
-- safe-with: 0.1.0
-- Limited database roles write through functions only, and nobody calls a function that was not granted to him.

-- Functions are for those they are granted to; definitions/zz_public_rights.sql says the same of later ones.
revoke execute on all functions in schema laneway from public;

-- Whether somebody ran a schedule to get a job: who wrote the schedule does not approve it.
create index schedule_slots_manual on laneway.schedule_slots (job_id) where manual;

-- What jobs of a batch have in common: definitions/submit_batch.sql.
create type laneway.batch_kind as (
    kind integer, job_type text, workspace text, priority integer, max_retries integer, run_at timestamptz,
    unique_key text, tags text[], created_by text, traceparent text, concurrency_key text, needs text,
    max_age double precision, two_person boolean, is_gated boolean
);
