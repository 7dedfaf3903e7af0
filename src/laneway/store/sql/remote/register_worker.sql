-- Registers the newest stream of a remote worker, only for the principal that first registered its id.
-- Notifies the replica that has an older stream.
with known as materialized (
    select w.session from laneway.workers w
     where w.id = %(id)s::uuid and w.principal_id = %(principal_id)s::uuid and w.stopped_at is null
), written as (
    insert into laneway.workers as w (id, name, host, pid, code, transport, job_types, lanes, concurrency, memory_bytes,
                                      principal_id, session)
    values (%(id)s, %(name)s, %(host)s, %(pid)s, %(code)s, %(transport)s, %(job_types)s::text[], %(lanes)s::text[],
            %(concurrency)s, %(memory_bytes)s::bigint, %(principal_id)s, %(stream_id)s)
    on conflict (id) do update
       set (name, host, pid, code, job_types, lanes, concurrency, memory_bytes, session, seen_at, stopped_at)
         = (excluded.name, excluded.host, excluded.pid, excluded.code, excluded.job_types, excluded.lanes,
            excluded.concurrency, excluded.memory_bytes, excluded.session, clock_timestamp(), null)
     where w.principal_id = excluded.principal_id
    returning w.id, w.drain_requested_at is not null as is_drained
)
select w.is_drained,
       (select pg_notify('laneway', 'session ' || w.id || ' ' || %(stream_id)s::uuid) from known k where k.session is not null)
  from written w
