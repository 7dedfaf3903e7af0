-- Makes a worker process known under its fresh id.
insert into laneway.workers (id, name, host, pid, code, job_types, lanes, concurrency)
values (%(id)s, %(name)s, %(host)s, %(pid)s, %(code)s, %(job_types)s::text[], %(lanes)s::text[], %(concurrency)s)
on conflict (id) do update set seen_at = clock_timestamp(), stopped_at = null
