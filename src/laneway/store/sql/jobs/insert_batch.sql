-- The rows of a batch without COPY, for drivers that have none; the same rows as COPY would store.
with given as materialized (
    select g.seq, g.id, g.job_type, g.workspace, g.payload::jsonb as payload, g.priority, g.max_retries,
           g.run_at::timestamptz as run_at, g.unique_key, g.tags::text[] as tags,
           %(now)s::text::timestamptz as now, g.created_by, g.traceparent, g.concurrency_key, g.is_gated
      from unnest(%(seqs)s::bigint[], %(ids)s::uuid[], %(job_types)s::text[], %(workspaces)s::text[],
                  %(payloads)s::text[], %(priorities)s::integer[], %(max_retries)s::integer[], %(run_ats)s::text[],
                  %(unique_keys)s::text[], %(tags)s::text[], %(created_bys)s::text[], %(traceparents)s::text[],
                  %(concurrency_keys)s::text[], %(gated)s::boolean[])
           as g (seq, id, job_type, workspace, payload, priority, max_retries, run_at, unique_key, tags,
                 created_by, traceparent, concurrency_key, is_gated)
), stored as (
    insert into laneway.jobs (seq, id, job_type, workspace, payload, priority, max_retries, run_at, unique_key,
                              tags, created_at, created_by, traceparent, concurrency_key)
    select g.seq, g.id, g.job_type, g.workspace, g.payload, g.priority, g.max_retries, g.run_at, g.unique_key,
           g.tags, g.now, g.created_by, g.traceparent, g.concurrency_key from given g
), later as (
    insert into laneway.delayed (seq, job_type, rank, run_at)
    select g.seq, g.job_type, -g.priority, g.run_at from given g where g.run_at > g.now and not g.is_gated
)
insert into laneway.ready (seq, job_type, rank, ready_at)
select g.seq, g.job_type, -g.priority, g.now from given g where g.run_at > g.now is not true and not g.is_gated
