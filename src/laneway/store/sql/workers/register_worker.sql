-- Registers a worker process under its new id, or the job types that it serves now.
insert into laneway.workers (id, name, host, pid, code, transport, job_types, lanes, concurrency, memory_bytes)
values (%(id)s, %(name)s, %(host)s, %(pid)s, %(code)s, %(transport)s, %(job_types)s::text[], %(lanes)s::text[],
        %(concurrency)s, %(memory_bytes)s::bigint)
on conflict (id) do update set seen_at = clock_timestamp(), stopped_at = null, job_types = excluded.job_types
