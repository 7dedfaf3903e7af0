-- Waiting jobs of each principal, and the events that it sent and that are kept, counted against the bounds of its grants.
-- Functions called from outside run with their owner's rights: a server with the grants of the previous version has none on
-- these tables. Counters move like those of slots (counters.sql), because each submit changes one. They are never deleted.

-- The waiting jobs of a principal by its counters; one snapshot shows one version of each.
create or replace function laneway.queued_of(p_principal uuid, out jobs bigint, out bytes bigint)
language sql stable
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
    select coalesce(sum(c.jobs), 0)::bigint, coalesce(sum(c.bytes), 0)::bigint
      from generate_series(0, 8) s
     cross join lateral (select x.jobs, x.bytes from laneway.queue_usage x
                          where x.principal_id = p_principal and x.slot = s::smallint order by x.place desc limit 1) c
$$;

-- Adds to a counter of a principal. p_swept_to, p_pause_s: the position of a sweep, and the pause before the next one.
create or replace function laneway.count_queued(
    p_principal uuid, p_slot integer, p_jobs bigint, p_bytes bigint,
    p_swept_to bigint default null, p_pause_s double precision default null)
returns void language plpgsql volatile
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
    loop
        update laneway.queue_usage c
           set jobs = c.jobs + p_jobs, bytes = c.bytes + p_bytes,
               changes = (c.changes + 1) % 32, place = c.place + (c.changes + 1) / 32,
               swept_at = case when p_swept_to is null then c.swept_at else clock_timestamp() end,
               swept_to = coalesce(p_swept_to, c.swept_to), pause_s = coalesce(p_pause_s, c.pause_s)
         where c.principal_id = p_principal and c.slot = p_slot::smallint
           and c.place = (select x.place from laneway.queue_usage x
                           where x.principal_id = p_principal and x.slot = p_slot::smallint order by x.place desc limit 1);
        if found then return; end if;
        -- The counter moved after that statement began, or does not exist. With the lock, the next read finds it.
        perform from laneway.queue_usage x
          where x.principal_id = p_principal and x.slot = p_slot::smallint order by x.place desc limit 1 for no key update;
        if not found then
            perform pg_advisory_xact_lock(hashtextextended(p_principal::text, 5577006791947779413 + p_slot));
            insert into laneway.queue_usage (principal_id, slot)
            select p_principal, p_slot
             where not exists (select from laneway.queue_usage x where x.principal_id = p_principal and x.slot = p_slot::smallint);
        end if;
    end loop;
end $$;

-- Raises LW004 if more jobs wait than allowed; null is unbounded.
create or replace function laneway.check_max_queued(
    p_jobs bigint, p_bytes bigint, p_max_queued bigint, p_max_bytes bigint)
returns void language plpgsql immutable as $$
begin
    if p_jobs > p_max_queued then
        raise exception using errcode = 'LW004', column = 'max_queued', detail = p_max_queued, message = format(
            'your grants allow %s waiting jobs (max_queued); with these there would be %s', p_max_queued, p_jobs);
    elsif p_bytes > p_max_bytes then
        raise exception using errcode = 'LW004', column = 'max_queued_bytes', detail = p_max_bytes, message = format(
            'your grants allow %s bytes of waiting payloads (max_queued_bytes); with these there would be %s',
            p_max_bytes, p_bytes);
    end if;
end $$;

-- Raises LW001 if a principal uses more unpublished job types than allowed.
create or replace function laneway.check_max_types(p_new text, p_types bigint, p_max_types bigint)
returns void language plpgsql immutable as $$
begin
    if p_types > p_max_types then
        raise exception using errcode = 'LW001', message = format(
            'job_type: no worker has published %s, and your grants allow %s such job types (max_types)',
            to_json(p_new), p_max_types);
    end if;
end $$;

-- Whether the counters are of the kept events of a principal, not of its waiting jobs: store/quotas.py makes its id a UUID of
-- version 8, and those of principals have version 4. `seq` is then the id of an event.
create or replace function laneway.is_event_account(p_id uuid) returns boolean language sql immutable as $$
    select substr(p_id::text, 15, 1) = '8'
$$;

-- Raises LW004 if more events are kept than allowed; null is unbounded. Its hint has the seconds, from 1 to 3600, until the
-- first of the 100 oldest events expires.
create or replace function laneway.check_max_events(
    p_events bigint, p_bytes bigint, p_max_events bigint, p_max_bytes bigint, p_account uuid default null)
returns void language plpgsql stable as $$
declare
    v_pause text := '5';
begin
    if p_events > p_max_events or p_bytes > p_max_bytes then
        select coalesce(ceil(least(greatest(extract(epoch from min(e.expires_at) - clock_timestamp()), 1), 3600))::text, v_pause)
          into v_pause
          from (select x.seq from laneway.queued_by x where x.principal_id = p_account order by x.seq limit 100) q
         cross join lateral (select y.expires_at from laneway.sent_events y where y.id = q.seq offset 0) e;
    end if;
    if p_events > p_max_events then
        raise exception using errcode = 'LW004', column = 'max_queued', detail = p_max_events, hint = v_pause, message = format(
            'your grants allow %s kept events (max_queued); with this one there would be %s', p_max_events, p_events);
    elsif p_bytes > p_max_bytes then
        raise exception using errcode = 'LW004', column = 'max_queued_bytes', detail = p_max_bytes, hint = v_pause, message = format(
            'your grants allow %s bytes of kept events (max_queued_bytes); with this one there would be %s',
            p_max_bytes, p_bytes);
    end if;
end $$;

-- Sends an event as laneway.send_event, and counts it against the sender's quota until its retention is over. Raises LW004
-- and stores nothing if more would be kept than allowed. The caller has checked the payload.
create or replace function laneway.send_counted_event(
    p_account uuid, p_max_events bigint, p_max_bytes bigint, p_name text, p_key text, p_payload jsonb, p_workspace text,
    p_sent_by text, p_retention interval, out id bigint, out delivered integer, out job_types text[])
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
    v_bytes bigint := octet_length(p_payload::text);
begin
    perform laneway.check_max_events(q.jobs + 1, q.bytes + v_bytes, p_max_events, p_max_bytes, p_account)
       from laneway.queued_of(p_account) q;
    select s.id, s.delivered, s.job_types into send_counted_event.id, send_counted_event.delivered, send_counted_event.job_types
      from laneway.send_event(p_name, p_key, p_payload, p_workspace, p_sent_by, retention => p_retention,
                              max_payload_bytes => 2147483647) s;
    insert into laneway.queued_by (principal_id, seq, bytes) values (p_account, send_counted_event.id, v_bytes);
    perform laneway.count_queued(p_account, 1 + pg_backend_pid() % 8, 1, v_bytes);
    perform laneway.check_max_events(q.jobs, q.bytes, p_max_events, p_max_bytes, p_account)
       from laneway.queued_of(p_account) q;
end $$;

-- Refuses jobs before anything is written, by the current counters, with the errors of charge_quota, which decides.
create or replace function laneway.check_quota(
    p_principal uuid, p_jobs bigint, p_bytes bigint, p_types text[], p_max_queued bigint, p_max_bytes bigint,
    p_max_types bigint)
returns void language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
    v_since timestamptz := clock_timestamp() - interval '30 days';
    v_new   text;
    v_types bigint;
begin
    if p_max_types is not null and p_types <> '{}' then
        select min(n.name), count(*) into v_new, v_types
          from (select distinct x as name from unnest(p_types) x) n
         where not exists (select from laneway.job_types t where t.name = n.name)
           and not exists (select from laneway.unpublished_types u
                            where u.principal_id = p_principal and u.job_type = n.name and u.used_at >= v_since);
        if v_types > 0 then
            v_types := v_types + (
                select count(*) from (
                    select from laneway.unpublished_types u
                     where u.principal_id = p_principal and u.used_at >= v_since
                       and not exists (select from laneway.job_types t where t.name = u.job_type)
                     limit p_max_types + 1) x);
            perform laneway.check_max_types(v_new, v_types, p_max_types);
        end if;
    end if;
    if p_max_queued is null and p_max_bytes is null then return; end if;
    perform laneway.check_max_queued(q.jobs + p_jobs, q.bytes + p_bytes, p_max_queued, p_max_bytes)
       from laneway.queued_of(p_principal) q;
end $$;

-- Counts new or retried jobs against a principal's quota, in the transaction that submits them; null is unbounded.
-- Raises LW004 for too many waiting jobs, LW001 for one more unpublished job type. Concurrent transactions do not see
-- each other's jobs: together they may exceed a bound by what each of them submits.
create or replace function laneway.charge_quota(
    p_principal uuid, p_ids uuid[], p_bytes bigint[], p_max_queued bigint, p_max_bytes bigint, p_max_types bigint)
returns void language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
    v_now   timestamptz := clock_timestamp();
    v_jobs  bigint;
    v_bytes bigint;
    v_new   text;
begin
    if p_max_types is not null then
        with used as (
            insert into laneway.unpublished_types as u (principal_id, job_type)
            select p_principal, n.job_type
              from (select distinct j.job_type from laneway.jobs j where j.id = any (p_ids)) n
             where not exists (select from laneway.job_types t where t.name = n.job_type)
             order by n.job_type
            on conflict (principal_id, job_type) do update set used_at = v_now
             where u.used_at not between v_now - interval '1 day' and v_now
            returning job_type)
        select min(job_type) into v_new from used;
        if v_new is not null then
            delete from laneway.unpublished_types u
             where u.principal_id = p_principal
               and (u.used_at < v_now - interval '30 days'
                    or exists (select from laneway.job_types t where t.name = u.job_type));
            perform laneway.check_max_types(v_new, count(*), p_max_types)
               from (select from laneway.unpublished_types u where u.principal_id = p_principal limit p_max_types + 1) x;
        end if;
    end if;
    if p_max_queued is null and p_max_bytes is null then return; end if;
    with queued as (
        insert into laneway.queued_by (principal_id, seq, bytes)
        select p_principal, j.seq, coalesce(g.bytes, octet_length(j.payload::text))
          from unnest(p_ids, p_bytes) as g (id, bytes) join laneway.jobs j on j.id = g.id
         order by j.seq
        on conflict (principal_id, seq) do nothing
        returning bytes)
    select count(*), coalesce(sum(bytes), 0) into v_jobs, v_bytes from queued;
    perform laneway.count_queued(p_principal, 1 + pg_backend_pid() % 8, v_jobs, v_bytes);
    perform laneway.check_max_queued(q.jobs, q.bytes, p_max_queued, p_max_bytes) from laneway.queued_of(p_principal) q;
end $$;

-- Sets the counters of a principal to the sum of their rows, whatever was done to the tables; returns whether they
-- differed. Both change in one transaction, so every snapshot shows the same difference. Skips a principal that another
-- transaction corrects, and one with more than p_most rows.
create or replace function laneway.correct_queued(p_principal uuid, p_most integer default 1000000) returns boolean
language plpgsql volatile
set jit = off
as $$
declare
    v_rows  bigint;
    v_jobs  bigint;
    v_bytes bigint;
begin
    if not pg_try_advisory_xact_lock(hashtextextended(p_principal::text, 5577006791947779413)) then return false; end if;
    select x.n, x.n - q.jobs, x.bytes - q.bytes into v_rows, v_jobs, v_bytes
      from laneway.queued_of(p_principal) q
     cross join (select count(*) as n, coalesce(sum(y.bytes), 0)::bigint as bytes
                   from (select b.bytes from laneway.queued_by b where b.principal_id = p_principal limit p_most + 1) y) x;
    if v_rows > p_most or (v_jobs = 0 and v_bytes = 0) then return false; end if;
    perform laneway.count_queued(p_principal, 0, v_jobs, v_bytes);
    return true;
end $$;

-- Stops counting jobs of a principal that have started or ended, or events that are no longer kept: reads p_limit rows, from the position of the last
-- sweep. Returns how many fewer jobs are counted. One sweep at a time, after a pause of a second plus twenty times
-- the duration of the last one, because a principal at its bound submits often. A sweep of all rows without result
-- corrects the counters.
create or replace function laneway.sweep_queued(p_principal uuid, p_limit integer default 10000) returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_now    timestamptz := clock_timestamp();
    v_last   laneway.queue_usage;
    v_gone   bigint[];
    v_looked integer;
    v_to     bigint;
    v_jobs   bigint;
    v_bytes  bigint;
    v_was    bigint;
    v_is_events boolean := laneway.is_event_account(p_principal);
begin
    if not pg_try_advisory_xact_lock(hashtextextended(p_principal::text, 5577006791947779413)) then return 0; end if;
    select * into v_last from laneway.queue_usage x
     where x.principal_id = p_principal and x.slot = 0 order by x.place desc limit 1;
    -- A time in the future was stored before the clock was set back.
    if v_last.swept_at between v_now - make_interval(secs => v_last.pause_s) and v_now then return 0; end if;
    select array_agg(k.seq) filter (where k.is_gone), count(*), max(k.seq) into v_gone, v_looked, v_to
      from (select q.seq,
                   case when v_is_events
                        then (select true from laneway.sent_events e where e.id = q.seq and e.expires_at > v_now) is null
                        else (select true from laneway.outcome o where o.seq = q.seq)
                             or (select true from laneway.lease l where l.seq = q.seq)
                             or (select true from laneway.jobs j where j.seq = q.seq) is null end as is_gone
              from laneway.queued_by q
             where q.principal_id = p_principal and q.seq > coalesce(v_last.swept_to, 0)
             order by q.seq limit p_limit) k;
    with gone as (
        delete from laneway.queued_by q where q.principal_id = p_principal and q.seq = any (v_gone) returning q.bytes)
    select count(*), coalesce(sum(bytes), 0) into v_jobs, v_bytes from gone;
    if v_looked < p_limit then v_to := 0; end if;
    perform laneway.count_queued(p_principal, 0, -v_jobs, -v_bytes, v_to,
                                 1 + 20 * extract(epoch from clock_timestamp() - v_now));
    if v_jobs = 0 and v_to = 0 then
        v_was := (select q.jobs from laneway.queued_of(p_principal) q);
        if laneway.correct_queued(p_principal) then
            -- Only the bytes may have been wrong.
            return greatest(1, least(v_was - (select q.jobs from laneway.queued_of(p_principal) q), 2147483647));
        end if;
    end if;
    return v_jobs;
end $$;

-- Principals with counted jobs, in order from p_from on.
create or replace function laneway.counted_principals(p_from uuid) returns setof uuid
language sql stable
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
    with recursive found as (
        select '00000000-0000-0000-0000-000000000000'::uuid as id
        union all
        select least((select u.principal_id from laneway.queue_usage u where u.principal_id > f.id order by 1 limit 1),
                     (select q.principal_id from laneway.queued_by q where q.principal_id > f.id order by 1 limit 1),
                     (select t.principal_id from laneway.unpublished_types t where t.principal_id > f.id order by 1 limit 1))
          from found f where f.id is not null
    )
    select f.id from found f where f.id > '00000000-0000-0000-0000-000000000000' order by f.id < p_from, f.id
$$;

-- Sweeps for all principals, also disabled ones and those without bounds now, and deletes job types that they used long
-- ago; some principals per call, from a random one on. Returns how many rows it deleted.
create or replace function laneway.sweep_all_queued(p_principals integer) returns integer
language plpgsql volatile as $$
declare
    v_id   uuid;
    v_n    integer;
    v_all  integer := 0;
    v_took integer := 0;
begin
    for v_id in select * from laneway.counted_principals(gen_random_uuid()) loop
        v_n := laneway.sweep_queued(v_id);
        v_took := v_took + sign(v_n);
        v_all := v_all + v_n;
        delete from laneway.unpublished_types u
         where u.principal_id = v_id and u.used_at < clock_timestamp() - interval '30 days';
        get diagnostics v_n = row_count;
        v_all := v_all + v_n;
        exit when v_took >= p_principals;
    end loop;
    return v_all;
end $$;

-- Corrects counters of waiting jobs; returns for how many principals. Reads about p_most rows, from a random
-- principal on.
create or replace function laneway.recount_queued(p_most integer default 500000) returns integer
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_id     uuid;
    v_mended integer := 0;
    v_left   bigint := p_most;
begin
    for v_id in select * from laneway.counted_principals(gen_random_uuid()) loop
        if laneway.correct_queued(v_id) then v_mended := v_mended + 1; end if;
        v_left := v_left - greatest(0, (select q.jobs from laneway.queued_of(v_id) q));
        exit when v_left < 0;
    end loop;
    return v_mended;
end $$;
