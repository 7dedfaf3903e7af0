-- Waits of handlers. Each is stored under its name by a fenced call, then the verdict `wait` ends the attempt and
-- moves the job to `waiting`. Those that a worker calls run with their owner's rights, and take no clock: a worker writes
-- waits only through them, at the time of the database.

-- Locks the lease of the running attempt for a write about a wait, and counts it as progress. Returns kept,
-- cancel_requested, fenced or busy (try again). Never waits for a lock.
create or replace function laneway.lock_for_wait(p_seq bigint, p_attempt integer, p_now timestamptz)
returns text language plpgsql volatile as $$
declare
    v_cancel boolean;
    v_type   text;
begin
    select l.cancel_requested_at is not null, l.job_type into v_cancel, v_type from laneway.lease l
     where l.seq = p_seq and l.attempt = p_attempt for no key update skip locked;
    if not found then
        perform from laneway.lease l where l.seq = p_seq and l.attempt = p_attempt;
        return case when found then 'busy' else 'fenced' end;
    end if;
    if v_type like E'\x01%' then
        raise exception using errcode = 'LW001', message = 'wait: an analysis cannot wait, it returns an Analysis';
    end if;
    update laneway.lease l set last_progress_at = p_now where l.seq = p_seq;
    return case when v_cancel then 'cancel_requested' else 'kept' end;
end $$;

-- Adds a wait of a job that the caller has locked. Refuses the name of a step, more than 5,000 waits, and another event
-- once those that the job has taken hold more than 16 MiB: each run of the handler reads them all.
create or replace function laneway.add_wait(
    p_seq bigint, p_name text, p_kind text, p_total integer, p_event text, p_key text, p_until timestamptz, p_now timestamptz)
returns laneway.handler_waits language plpgsql volatile as $$
declare
    v_wait  laneway.handler_waits;
    v_count bigint;
    v_bytes bigint;
begin
    if exists (select from laneway.steps s where s.seq = p_seq and s.name = p_name) then
        raise exception using errcode = 'LW001', message = format(
            'wait %s: a step of this job has the name; steps and waits need different names', p_name);
    end if;
    select count(*), sum(coalesce(h.event_bytes, pg_column_size(h.result))) into v_count, v_bytes
      from laneway.handler_waits h where h.seq = p_seq;
    if v_bytes > 16777216 and p_kind = 'event' then
        raise exception using errcode = 'LW001', message = format(
            'wait %s: the events that this job has taken hold %s bytes; with more than 16777216 it takes no further one',
            p_name, v_bytes);
    end if;
    if v_count >= 5000 then
        raise exception using errcode = 'LW001', message = format('wait %s: a job has at most 5000 waits', p_name);
    end if;
    insert into laneway.handler_waits (seq, name, kind, position, workspace, subjects, total, event, key, until, asked_at)
    select p_seq, p_name, p_kind, v_count + 1, j.workspace, case when p_kind = 'sub_jobs' then '{}'::bigint[] end,
           p_total, p_event, p_key, p_until, p_now
      from laneway.jobs j where j.seq = p_seq
    returning * into v_wait;
    return v_wait;
end $$;

-- Begins a sleep or a wait for an event, or looks at one that a handler asked for before: `open`, `done` or
-- `timed_out`, with the payload of the event. Takes an event that was sent already. p_seconds: the time to sleep, or
-- the timeout of the event, from the first call of this name; null: no timeout. Answers as laneway.save_step.
create or replace function laneway.begin_wait(
    p_seq bigint, p_attempt integer, p_name text, p_kind text, p_seconds double precision, p_event text, p_key text,
    out answer text, out state text, out result text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_now  timestamptz := clock_timestamp();
    v_wait laneway.handler_waits;
begin
    answer := laneway.lock_for_wait(p_seq, p_attempt, v_now);
    if answer <> 'kept' then return; end if;
    select h.* into v_wait from laneway.handler_waits h where h.seq = p_seq and h.name = p_name;
    if not found then
        v_wait := laneway.add_wait(p_seq, p_name, p_kind, null, p_event, p_key,
                                   -- least() ignores null, which means no timeout.
                                   case when p_seconds is not null
                                        then v_now + make_interval(secs => least(p_seconds, 3162240000)) end, v_now);
    elsif (v_wait.kind, v_wait.event, v_wait.key) is distinct from (p_kind, p_event, p_key) then
        raise exception using errcode = 'LW001', message = format(
            'wait %s: an earlier run of the handler used the name for another wait', p_name);
    end if;
    if v_wait.done_at = '-infinity' then
        -- Its job was cancelled meanwhile, and retried.
        update laneway.handler_waits h set done_at = null where h.seq = p_seq and h.name = p_name returning h.* into v_wait;
    end if;
    if v_wait.done_at is null and v_wait.kind = 'event' then
        v_wait := laneway.take_event(v_wait, v_now);
    end if;
    if v_wait.done_at is null and v_wait.until <= v_now then
        update laneway.handler_waits h set done_at = v_now where h.seq = p_seq and h.name = p_name
        returning h.* into v_wait;
    end if;
    state := case when v_wait.done_at is null then 'open'
                  when v_wait.kind = 'event' and v_wait.event_id is null then 'timed_out' else 'done' end;
    result := v_wait.result::text;
end $$;

-- Submits the next sub-jobs of a job under the name of their wait: those after p_offset of p_total. A repeated call
-- stores nothing. They have the workspace, the flow and, unless given, the created_by of their owner. Answers as
-- laneway.save_step; stored: how many of the wait are stored now; job_types: the types to wake.
create or replace function laneway.submit_sub_jobs(
    p_seq bigint, p_attempt integer, p_name text, p_total integer, p_offset integer, p_ids uuid[], p_payloads jsonb,
    p_kind_of integer[], p_kinds jsonb, p_max_payload_bytes integer default 1048576,
    p_max_key_bytes integer default 512,
    out answer text, out stored integer, out job_types text[])
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
-- The lease is locked, and is not renewed meanwhile.
set lock_timeout = '1s'
as $$
declare
    v_now      timestamptz := clock_timestamp();
    v_wait     laneway.handler_waits;
    v_owner    record;
    v_ids      uuid[];
    v_seqs     bigint[];
    v_new      bigint[];
    v_depth    integer;
    v_other    text;
begin
    answer := laneway.lock_for_wait(p_seq, p_attempt, v_now);
    if answer <> 'kept' then return; end if;
    select h.* into v_wait from laneway.handler_waits h where h.seq = p_seq and h.name = p_name;
    if not found then
        v_wait := laneway.add_wait(p_seq, p_name, 'sub_jobs', p_total, null, null, null, v_now);
    elsif v_wait.kind <> 'sub_jobs' or v_wait.total <> p_total then
        raise exception using errcode = 'LW001', message = format(
            'wait %s: an earlier run of the handler used the name for another wait', p_name);
    end if;
    stored := cardinality(v_wait.subjects);
    if stored > p_offset or p_total = 0 then return; end if;
    if stored < p_offset then
        raise exception using errcode = 'LW001', message = format(
            'wait %s: sub-jobs after %s are missing', p_name, stored);
    end if;
    with recursive owners as (
        select p_seq as seq, 1 as depth
        union all
        select l.owner, o.depth + 1 from owners o
         cross join lateral (select k.owner from laneway.links k where k.seq = o.seq offset 0) l
         where l.owner is not null and o.depth <= 100
    )
    select max(o.depth) into v_depth from owners o;
    if v_depth > 100 then
        raise exception using errcode = 'LW001', message = format(
            'wait %s: sub-jobs are nested at most 100 deep', p_name);
    end if;
    select j.workspace, j.created_by, f.id as flow, j.flow as flow_seq into v_owner
      from laneway.jobs j
      left join lateral (select x.id from laneway.flows x where x.seq = j.flow offset 0) f on true
     where j.seq = p_seq;
    select k.kind ->> 'workspace' into v_other from jsonb_array_elements(p_kinds) as k (kind)
     where k.kind ->> 'workspace' not in ('default', v_owner.workspace) limit 1;
    if found then
        raise exception using errcode = 'LW001', message = format(
            'workspace: sub-jobs run in the workspace of their job, %s, not in %s', v_owner.workspace, v_other);
    end if;
    select array_agg(s.job_id order by s.n) into v_ids
      from (select b.job_id, row_number() over () as n from laneway.submit_batch(
                p_ids, p_payloads, p_kind_of,
                (select jsonb_agg(k.kind || jsonb_build_object('workspace', v_owner.workspace, 'created_by',
                                  coalesce(k.kind ->> 'created_by', v_owner.created_by)) order by k.n)
                   from jsonb_array_elements(p_kinds) with ordinality as k (kind, n)),
                p_max_payload_bytes => p_max_payload_bytes, p_max_key_bytes => p_max_key_bytes,
                p_flow => v_owner.flow) b) s;
    select array_agg(j.seq order by g.n), array_agg(j.seq order by j.seq) filter (where g.id = g.given)
      into v_seqs, v_new
      from unnest(v_ids, p_ids) with ordinality as g (id, given, n)
     cross join lateral (select b.seq from laneway.jobs b where b.id = g.id offset 0) j;
    insert into laneway.links (seq, flow, owner, owner_wait)
    select n.seq, v_owner.flow_seq, p_seq, p_name from unnest(v_new) as n (seq)
    on conflict (seq) do update set owner = excluded.owner, owner_wait = excluded.owner_wait;
    perform laneway.add_sub_job_edges(p_seq, v_seqs, v_new);
    update laneway.handler_waits h set subjects = h.subjects || v_seqs
     where h.seq = p_seq and h.name = p_name;
    stored := stored + cardinality(v_seqs);
    job_types := array(select distinct k.kind ->> 'job_type' from jsonb_array_elements(p_kinds) as k (kind));
end $$;

-- Lets a job wait for its sub-jobs: p_new are stored by this transaction, the others of p_subjects existed before.
create or replace function laneway.add_sub_job_edges(p_owner bigint, p_subjects bigint[], p_new bigint[])
returns void language plpgsql volatile
set jit = off
set enable_seqscan = off
as $$
declare
    v_older bigint[] := array(select distinct s from unnest(p_subjects) s where s <> all (coalesce(p_new, '{}')));
    v_open  bigint[] := p_new;
    v_count bigint;
begin
    if v_older <> '{}' then
        if exists (with recursive owners as (
                       select p_owner as seq
                       union
                       select l.owner from owners o
                        cross join lateral (select k.owner from laneway.links k where k.seq = o.seq offset 0) l
                        where l.owner is not null)
                   select from owners o where o.seq = any (v_older)) then
            raise exception using errcode = 'LW001', message =
                'unique_key: a sub-job would be the job itself, or one that waits for it';
        end if;
        v_open := v_open || array(select p.seq from laneway.lock_parents(v_older) p where p.status is null);
    end if;
    insert into laneway.open_edges (parent, child, rule) select s, p_owner, 'run' from unnest(v_open) s
    on conflict do nothing;
    get diagnostics v_count = row_count;
    if v_count > 0 then
        insert into laneway.countdowns as c (seq, missing) values (p_owner, v_count)
        on conflict (seq) do update set missing = c.missing + excluded.missing;
    end if;
end $$;

-- The results of the sub-jobs of a wait in order: those after p_after, at most p_limit, and no more once the results of the
-- page have p_bytes. status: open for a job that the owner still waits for, null for a deleted one.
create or replace function laneway.sub_job_results(
    p_seq bigint, p_name text, p_after integer, p_limit integer, p_bytes integer default null)
returns table (id uuid, job_type text, name text, status text, result text)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    v_one  record;
    v_size bigint := 0;
begin
    for v_one in
        select j.id, j.job_type, l.name,
               case when (select true from laneway.open_edges e where e.parent = u.seq and e.child = p_seq) then 'open'
                    else coalesce(o.status, laneway.status_of(u.seq)) end as status,
               case when o.status = 'completed' then o.result end as result
          from laneway.handler_waits h
         cross join unnest(h.subjects[p_after + 1 : p_after + p_limit]) with ordinality as u (seq, n)
          left join lateral (select b.id, b.job_type from laneway.jobs b where b.seq = u.seq offset 0) j on true
          left join lateral (select k.name from laneway.links k where k.seq = u.seq offset 0) l on true
          left join lateral (select x.status, x.result from laneway.outcome x where x.seq = u.seq offset 0) o on true
         where h.seq = p_seq and h.name = p_name
         order by u.n
    loop
        id := v_one.id; job_type := v_one.job_type; name := v_one.name; status := v_one.status;
        result := v_one.result::text;
        return next;
        v_size := v_size + coalesce(octet_length(result), 0);
        exit when v_size >= p_bytes;
    end loop;
end $$;

-- The waits that the handlers of these jobs asked for so far, in order. state: `done` or `timed_out` for those whose answer is
-- final and, with the job's earlier ones, small enough to send along; null for the others, which laneway.begin_wait looks at.
-- Not for compressed ones, which may be a hundred times as large as they look.
create or replace function laneway.stored_waits(p_seqs bigint[], p_bytes integer default 65536)
returns table (seq bigint, name text, kind text, event text, key text, total integer, stored integer, state text, result text)
language sql stable security definer set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
    select w.seq, w.name, w.kind, w.event, w.key, w.total, w.stored,
           case when greatest(w.kept, w.size, 0) <= p_bytes then w.state end,
           case when greatest(w.kept, w.size, 0) <= p_bytes then w.answer end
      from unnest(p_seqs) s
     cross join lateral (
        select t.*, sum(octet_length(t.answer)) over (order by t.position) as size
          from (
            -- The text of numbers may be larger than they are in the table.
            select c.*, case when c.state = 'done' and c.kept <= p_bytes then c.result::text end as answer
              from (
                select h.seq, h.name, h.kind, h.event, h.key, h.total, cardinality(h.subjects) as stored, h.position, h.result,
                       case when h.kind = 'sub_jobs' or h.done_at is null or h.done_at = '-infinity'
                                 or pg_column_compression(h.result) is not null then null
                            when h.kind = 'event' and h.event_id is null then 'timed_out' else 'done' end as state,
                       sum(pg_column_size(h.result)) over (order by h.position) as kept
                  from laneway.handler_waits h where h.seq = s) c
            offset 0) t) w
     order by w.seq, w.position
$$;

-- The newest waits of a job, in the order in which its handler asked for them. jobs: the number of its sub-jobs; event_id,
-- sent_by, sent_at: the event that it took, its sender and its time. Waits of a cancelled job stay open.
create or replace function laneway.asked_waits(p_id uuid, p_limit integer)
returns table (name text, kind text, asked_at timestamptz, until timestamptz, ended_at timestamptz, jobs integer,
               event text, key text, event_id bigint, sent_by text, sent_at timestamptz)
language sql stable as $$
    -- Waits of the version before know their event only while it is kept.
    select h.name, h.kind, h.asked_at, h.until, nullif(h.done_at, '-infinity'), h.total, h.event, nullif(h.key, ''), h.event_id,
           coalesce(h.event_sent_by, e.sent_by), coalesce(h.event_sent_at, e.sent_at)
      from (select x.* from laneway.handler_waits x
             where x.seq = (select j.seq from laneway.jobs j where j.id = p_id)
             order by x.position desc limit p_limit) h
      left join laneway.sent_events e on e.id = h.event_id
     order by h.position
$$;

-- Moves jobs whose attempt ended with the verdict `wait` to waiting, or back to the queue if what they wait for came in
-- between. Returns the latter. Never waits for a lock: what it cannot see now is looked at after the commit.
create or replace function laneway.suspend(p_jobs laneway.suspended_job[])
returns bigint[] language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_now   timestamptz := clock_timestamp();
    v_job   laneway.suspended_job;
    v_wait  laneway.handler_waits;
    v_open  boolean;
    v_ready bigint[] := '{}';
    v_count integer;
begin
    foreach v_job in array p_jobs loop
        select h.* into v_wait from laneway.handler_waits h where h.seq = v_job.seq and h.name = v_job.name;
        v_open := false;
        if v_wait.kind = 'sub_jobs' then
            -- The end of a sub-job that changes the countdown meanwhile has it locked.
            select c.missing into v_count from laneway.countdowns c where c.seq = v_job.seq for update skip locked;
            if found then
                v_open := v_count > 0;
            elsif exists (select from laneway.countdowns c where c.seq = v_job.seq) then
                v_open := true;
                insert into laneway.arrivals (kind, seq) values ('counted', v_job.seq);
            end if;
        elsif v_wait.kind is not null then
            v_open := v_wait.done_at is null and (v_wait.until <= v_now) is not true;
            if v_wait.kind = 'event' and v_open then
                insert into laneway.event_checks (seq) values (v_job.seq);
            end if;
        end if;
        if v_open then
            if v_wait.kind = 'sub_jobs' and v_wait.done_at is not null then
                -- Retried sub-jobs are waited for again.
                update laneway.handler_waits h set done_at = null where h.seq = v_job.seq and h.name = v_job.name;
            end if;
            insert into laneway.waiting (seq, job_type, rank, attempt, retries, sealed, reason, name, wake_at, since)
            values (v_job.seq, v_job.job_type, v_job.rank, v_job.attempt, v_job.retries, v_job.sealed, v_wait.kind,
                    v_job.name, v_wait.until, v_now);
        elsif v_wait.kind is null then
            -- It asked for no such wait: as a snooze for no time.
            v_ready := v_ready || v_job.seq;
            insert into laneway.delayed (seq, job_type, rank, attempt, retries, sealed, run_at)
            values (v_job.seq, v_job.job_type, v_job.rank, v_job.attempt, v_job.retries, v_job.sealed,
                    v_now + laneway.uncharged_pause('snooze', v_job.attempt - v_job.retries));
        else
            if v_wait.kind = 'sub_jobs' then
                update laneway.handler_waits h set done_at = v_now where h.seq = v_job.seq and h.name = v_job.name;
            end if;
            v_ready := v_ready || v_job.seq;
            insert into laneway.ready (seq, job_type, fresh, rank, attempt, retries, sealed, ready_at)
            values (v_job.seq, v_job.job_type, false, v_job.rank, v_job.attempt, v_job.retries, v_job.sealed, v_now);
        end if;
    end loop;
    return v_ready;
end $$;

-- Releases jobs whose sleep or timeout is over; returns their types. For laneway.peek.
create or replace function laneway.wake_sleepers(p_limit integer default 1000)
returns text[] language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_now  timestamptz := clock_timestamp();
    v_seqs bigint[] := array(select w.seq from laneway.waiting w where w.wake_at <= v_now
                              order by w.wake_at limit p_limit for update skip locked);
begin
    return array(select distinct r.job_type from laneway.release_waiting(v_seqs, v_now) r);
end $$;
