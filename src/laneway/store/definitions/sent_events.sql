-- Events and the jobs that wait for them. An event and a wait that are committed at the same time must not miss each
-- other: each leaves a row in event_checks, and a look after its commit finds the other one. That look is part of
-- laneway.peek, so it needs neither a lock nor a read-committed caller.

-- Gives a wait the first event that its job has not taken. Returns the wait, unchanged if there is none. The caller has
-- locked the job's lease or its row in waiting.
create or replace function laneway.take_event(p_wait laneway.handler_waits, p_now timestamptz)
returns laneway.handler_waits language plpgsql volatile
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_event laneway.sent_events;
begin
    -- An array, and ordered by it: with an equality the planner could take the order from the primary key, and read all
    -- events if few have this key.
    select e.* into v_event from laneway.sent_events e
     where e.workspace = any (array[p_wait.workspace]) and e.name = p_wait.event and e.key = p_wait.key and e.expires_at > p_now
       and (e.id in (select h.event_id from laneway.handler_waits h where h.seq = p_wait.seq and h.event_id is not null))
           is not true
     order by e.workspace, e.id limit 1;
    if found then
        update laneway.handler_waits h
           set event_id = v_event.id, result = v_event.payload, done_at = p_now,
               event_bytes = octet_length(v_event.payload::text), event_sent_by = v_event.sent_by,
               event_sent_at = v_event.sent_at
         where h.seq = p_wait.seq and h.name = p_wait.name
        returning h.* into p_wait;
    end if;
    return p_wait;
end $$;

-- Delivers events to these jobs, as far as they wait for one and it was sent. Returns the types of those that go on.
-- Never waits for a lock: a job that another transaction has locked is looked at again later.
create or replace function laneway.deliver_to(p_seqs bigint[], p_now timestamptz)
returns table (seq bigint, job_type text)
language plpgsql volatile
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
    v_held bigint[];
    v_wait laneway.handler_waits;
    v_gone bigint[] := '{}';
begin
    v_held := array(select w.seq from laneway.waiting w where w.seq = any (p_seqs) and w.reason = 'event'
                       for update skip locked);
    insert into laneway.event_checks (seq)
    select w.seq from laneway.waiting w
     where w.seq = any (p_seqs) and w.reason = 'event' and w.seq <> all (v_held);
    for v_wait in
        select h.* from laneway.waiting w
         cross join lateral (select x.* from laneway.handler_waits x where x.seq = w.seq and x.name = w.name offset 0) h
         where w.seq = any (v_held) and h.done_at is null
         order by w.seq
    loop
        v_wait := laneway.take_event(v_wait, p_now);
        if v_wait.done_at is not null then
            v_gone := v_gone || v_wait.seq;
        end if;
    end loop;
    if v_gone <> '{}' then
        return query select r.seq, r.job_type from laneway.release_waiting(v_gone, p_now) r;
    end if;
end $$;

-- The jobs that wait for an event and have not taken it, p_limit of them; none once it has expired. So a caller that handles
-- these does not meet them again.
create or replace function laneway.event_waiters(p_event_id bigint, p_limit integer)
returns bigint[] language sql stable
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
    select array(select h.seq from laneway.sent_events e
                  cross join lateral (
                    select x.seq, x.name from laneway.handler_waits x
                     where x.workspace = e.workspace and x.event = e.name and x.key = e.key
                       and x.kind = 'event' and x.done_at is null offset 0) h
                  where e.id = p_event_id and e.expires_at > clock_timestamp()
                    and (select true from laneway.waiting w where w.seq = h.seq and w.name = h.name)
                    and (select true from laneway.handler_waits t where t.seq = h.seq and t.event_id = e.id limit 1) is null
                  limit p_limit)
$$;

-- Sends an event in the caller's transaction:
--   select * from laneway.send_event('reviewed', 'folder-7', '{"by": "reviewer"}');
-- Jobs that wait for it go on when the transaction commits, and those that begin to wait until its retention is over
-- take it then. delivered: how many go on; job_types: their types. wake: workers look at once after the commit, not only
-- at their next poll.
create or replace function laneway.send_event(
    name text, key text default '', payload jsonb default 'null', workspace text default 'default',
    sent_by text default null, wake boolean default false, retention interval default '24 hours',
    max_payload_bytes integer default 1048576,
    out id bigint, out delivered integer, out job_types text[])
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
    v_now     timestamptz := clock_timestamp();
    v_problem text;
    v_narrow  text[] := nullif(current_setting('laneway.workspaces', true), '')::text[];
    v_waiters bigint[];
begin
    v_problem := case
        when send_event.name is null or octet_length(send_event.name) not between 1 and 200 then 'name: 1 to 200 bytes'
        when octet_length(coalesce(send_event.key, '')) > 512 then 'key: at most 512 bytes'
        when send_event.payload is null then 'payload: may not be null'
        when send_event.workspace is null or octet_length(send_event.workspace) not between 1 and 128
            then 'workspace: 1 to 128 bytes'
        when octet_length(send_event.sent_by) not between 1 and 256 then 'sent_by: 1 to 256 bytes'
        when (send_event.retention between interval '1 second' and interval '366 days') is not true
            then 'retention: 1 second to a year' end;
    if v_problem is null and max_payload_bytes < 2147483647 then
        v_problem := 'payload: ' || laneway.payload_problem(send_event.payload, max_payload_bytes);
    end if;
    if v_problem is not null then
        raise exception using errcode = 'LW001', message = v_problem;
    end if;
    if send_event.workspace <> all (v_narrow) then
        raise insufficient_privilege using message = format(
            'row-level security: workspace %s is outside of laneway.workspaces', send_event.workspace);
    end if;
    insert into laneway.sent_events (workspace, name, key, payload, sent_at, sent_by, expires_at)
    values (send_event.workspace, send_event.name, coalesce(send_event.key, ''), send_event.payload, v_now,
            send_event.sent_by, v_now + send_event.retention)
    returning sent_events.id into id;
    insert into laneway.event_checks (event_id) values (id);
    delivered := 0;
    -- With an older snapshot, locked rows may have changed; then the look after the commit delivers.
    if current_setting('transaction_isolation') = 'read committed' then
        v_waiters := laneway.event_waiters(id, 1000);
        if v_waiters <> '{}' then
            select count(*), array_agg(distinct d.job_type) into delivered, job_types
              from laneway.deliver_to(v_waiters, v_now) d;
        end if;
    end if;
    if send_event.wake then
        -- The empty type makes workers look.
        perform laneway.wake(coalesce(job_types, array['']));
    end if;
end $$;

-- Sends several events in one transaction, all or none, as laneway.send_event; the answers are in the order given.
create or replace function laneway.send_events(p_events jsonb)
returns table (id bigint, delivered integer, job_types text[])
language sql volatile as $$
    select s.id, s.delivered, s.job_types
      from rows from (jsonb_to_recordset(p_events) as (
               name text, key text, payload jsonb, workspace text, sent_by text, retention_s double precision))
           with ordinality as e (name, key, payload, workspace, sent_by, retention_s, n)
     cross join lateral laneway.send_event(
           e.name, e.key, coalesce(e.payload, 'null'), e.workspace, e.sent_by, retention => make_interval(secs => e.retention_s),
           max_payload_bytes => 2147483647) s
     order by e.n
$$;

-- Makes the looks that commits left; returns the types of the jobs that go on, null if there were none. For laneway.peek.
create or replace function laneway.check_events(p_limit integer default 1000)
returns text[] language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_seqs    bigint[];
    v_events  bigint[];
    v_event   bigint;
    v_waiters bigint[];
begin
    with due as materialized (
        select c.ctid as tid from laneway.event_checks c order by c.id limit p_limit for update skip locked
    ), gone as (
        delete from laneway.event_checks c where c.ctid = any (array(select d.tid from due d))
        returning c.seq, c.event_id
    )
    select array_agg(g.seq) filter (where g.seq is not null), array_agg(g.event_id) filter (where g.event_id is not null)
      into v_seqs, v_events from gone g;
    foreach v_event in array coalesce(v_events, '{}') loop
        if coalesce(cardinality(v_seqs), 0) >= 2 * p_limit then
            insert into laneway.event_checks (event_id) values (v_event);
            continue;
        end if;
        v_waiters := laneway.event_waiters(v_event, p_limit);
        v_seqs := v_seqs || v_waiters;
        if cardinality(v_waiters) = p_limit then
            -- There may be more.
            insert into laneway.event_checks (event_id) values (v_event);
        end if;
    end loop;
    if v_seqs is null then return null; end if;
    return (select array_agg(distinct d.job_type) from laneway.deliver_to(v_seqs, clock_timestamp()) d);
end $$;

-- Deletes events whose retention is over; returns how many.
create or replace function laneway.delete_expired_events(p_limit integer default 1000)
returns integer language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    v_n integer;
begin
    delete from laneway.sent_events e
     where e.id = any (array(select x.id from laneway.sent_events x where x.expires_at <= clock_timestamp()
                              order by x.expires_at limit p_limit));
    get diagnostics v_n = row_count;
    return v_n;
end $$;
