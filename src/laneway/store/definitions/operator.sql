-- Each function follows the job through the tables, with one statement and so one snapshot per table, because a
-- claim may move it meanwhile; `found_in` is the state that it found, null for an unknown job.

-- Removes a job from the table where it waits; if it was about to take a key, the next of its type does instead.
create or replace function laneway.remove_waiting(
    p_seq bigint, out found_in text, out rank integer, out attempt integer, out retries integer)
language plpgsql volatile as $$
declare
    v_was_ready boolean;
begin
    with r as (
        delete from laneway.ready w where w.seq = p_seq returning w.job_type, w.rank, w.attempt, w.retries
    ), d as (
        delete from laneway.delayed w where w.seq = p_seq returning w.job_type, w.rank, w.attempt, w.retries
    ), k as (
        delete from laneway.key_waiters w where w.seq = p_seq returning w.job_type, w.rank, w.attempt, w.retries
    ), a as (
        delete from laneway.awaiting w where w.seq = p_seq returning w.job_type, w.rank, w.attempt, 0
    ), q as (
        delete from laneway.waiting w where w.seq = p_seq returning w.job_type, w.rank, w.attempt, w.retries
    )
    select case when x.place = 4 then 'awaiting_approval' when x.place = 5 then 'waiting' when x.job_type like E'\x01%' then 'pending'
                else 'approved' end, x.rank, x.attempt, x.retries, x.place = 1
      into found_in, rank, attempt, retries, v_was_ready
      from (select 1 as place, r.* from r union all select 2, d.* from d
            union all select 3, k.* from k union all select 4, a.* from a
            union all select 5, q.* from q) x;
    if v_was_ready then
        perform laneway.promote_next_for_key(j.workspace, j.concurrency_key, j.job_type)
           from laneway.jobs j where j.seq = p_seq and j.concurrency_key is not null;
    end if;
end $$;

-- Writes the end of a waiting job and frees its unique_key. `not_approved`: a cancelled job without a cancel request:
-- it was rejected, its approval expired, or a job that it comes after failed.
create or replace function laneway.end_waiting(
    p_seq bigint, p_status text, p_rank integer, p_attempt integer, p_retries integer, p_now timestamptz,
    p_by text, p_reason text, p_error jsonb)
returns void language plpgsql volatile as $$
declare
    v_job laneway.jobs;
begin
    select * into v_job from laneway.jobs j where j.seq = p_seq;
    insert into laneway.outcome (seq, status, workspace, job_type, priority, attempt, retries, finished_at,
                                 cancel_requested_at, cancel_by, cancel_reason, error, error_type)
    values (p_seq, case p_status when 'not_approved' then 'cancelled' else p_status end, v_job.workspace, v_job.job_type, -p_rank, p_attempt, p_retries, p_now,
            case when p_status = 'cancelled' then p_now end, p_by, p_reason, p_error, left(p_error ->> 'type', 200));
    delete from laneway.job_keys k
     where k.workspace = v_job.workspace and k.job_type = v_job.job_type
       and k.unique_key = v_job.unique_key and k.seq = p_seq;
    perform laneway.emit(array[p_seq], 'ended');
    -- The empty type makes workers look for arrivals.
    perform laneway.wake(array(select coalesce(n.job_type, '') from laneway.note_ends(array[p_seq]) n));
end $$;

-- Cancels a new job that comes after a failed one, and was placed nowhere.
create or replace function laneway.end_unstarted(p_seq bigint, p_cause bigint, p_now timestamptz)
returns void language sql volatile as $$
    select laneway.end_waiting(j.seq, 'not_approved', -j.priority, 0, 0, p_now, 'laneway', format(
               'after job %s: %s', (select b.id from laneway.jobs b where b.seq = p_cause),
               -- A job that lost its state is shown as failed.
               coalesce(o.status, 'failed')), null)
      from laneway.jobs j left join laneway.outcome o on o.seq = p_cause where j.seq = p_seq
$$;

-- Queued: cancelled at once. Running, also an analysis: requests its worker (`worker_id`) to stop. Terminal:
-- nothing. Busy: nothing, because another transaction has the job locked, such as one in which its handler
-- finished it; that one may stay open for long, so it is not waited for.
-- p_only: `waiting` skips running jobs, `running` skips all others.
create or replace function laneway.cancel(
    p_seq bigint, p_by text, p_reason text, p_only text default null, out found_in text, out worker_id uuid)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '2s'
as $$
declare
    v_now timestamptz := clock_timestamp();
    v_was record;
    v_is_first boolean;
begin
    for i in 1 .. 100 loop
        if p_only is distinct from 'running' then
            v_was := laneway.remove_waiting(p_seq);
            if v_was.found_in is not null then
                perform laneway.end_waiting(p_seq, 'cancelled', v_was.rank, v_was.attempt, v_was.retries, v_now,
                                            p_by, p_reason, null);
                if v_was.found_in = 'waiting' then
                    -- So that events do not read it. After a retry the handler asks again, and opens it.
                    update laneway.handler_waits h set done_at = '-infinity'
                     where h.seq = p_seq and h.kind = 'event' and h.done_at is null;
                end if;
                found_in := v_was.found_in;
                perform laneway.cancel_owned(p_seq, p_by, p_reason);
                return;
            end if;
        end if;
        update laneway.lease l
           set cancel_requested_at = coalesce(l.cancel_requested_at, v_now),
               cancel_by = coalesce(l.cancel_by, p_by), cancel_reason = coalesce(l.cancel_reason, p_reason)
         where l.seq = p_seq and (p_only is null or (p_only = 'running') = (l.job_type not like E'\x01%'))
        returning l.worker_id, case when l.job_type like E'\x01%' then 'pending' else 'running' end,
                  l.cancel_requested_at = v_now
             into worker_id, found_in, v_is_first;
        if found then
            if v_is_first then
                perform laneway.emit(array[p_seq], 'cancel_requested');
                perform laneway.cancel_owned(p_seq, p_by, p_reason);
            end if;
            return;
        end if;
        -- In one snapshot: the current state, unless it is one to cancel that the job reached meanwhile.
        select v.status into found_in from laneway.jobs_view v where v.seq = p_seq;
        if found_in is null or found_in in ('completed', 'failed', 'cancelled')
           or (p_only is not null and (p_only = 'running') <> (found_in = 'running')) then
            return;
        end if;
    end loop;
    raise exception 'job % changed its state 100 times during the cancel', p_seq;
-- A caller that cancels several jobs may meet another in the opposite order.
exception when lock_not_available or deadlock_detected then
    found_in := 'busy';
    worker_id := null;
end $$;

-- Leaves the cancel of the sub-jobs of a cancelled job to laneway.advance: they may be many.
create or replace function laneway.cancel_owned(p_seq bigint, p_by text, p_reason text) returns void
language plpgsql volatile
set jit = off
set enable_seqscan = off
as $$
begin
    if exists (select from laneway.links l where l.owner = p_seq) then
        insert into laneway.arrivals (kind, seq, by, reason) values ('cancelled', p_seq, p_by, p_reason);
        perform laneway.wake(array['']);
    end if;
end $$;

-- Changes the priority of a queued job; otherwise nothing.
create or replace function laneway.reprioritize(p_seq bigint, p_priority integer, out found_in text)
language plpgsql volatile as $$
declare
    v_key record;
begin
    if p_priority not between -32768 and 32767 then
        raise exception using errcode = 'LW001', message = 'priority: -32768 to 32767';
    end if;
    for i in 1 .. 100 loop
        update laneway.ready w set rank = -p_priority, fresh = false where w.seq = p_seq
        returning case when w.job_type like E'\x01%' then 'pending' else 'approved' end into found_in;
        exit when found;
        update laneway.delayed d set rank = -p_priority where d.seq = p_seq
        returning case when d.job_type like E'\x01%' then 'pending' else 'approved' end into found_in;
        exit when found;
        update laneway.key_waiters k set rank = -p_priority where k.seq = p_seq
        returning k.workspace, k.concurrency_key, k.job_type into v_key;
        if found then
            -- The end of the key's hold skipped this row meanwhile, because it was locked.
            perform from laneway.key_holders h
              where h.workspace = v_key.workspace and h.concurrency_key = v_key.concurrency_key for key share;
            if not found then
                perform laneway.promote_next_for_key(v_key.workspace, v_key.concurrency_key, v_key.job_type);
            end if;
            found_in := 'approved';
            exit;
        end if;
        update laneway.awaiting a set rank = -p_priority where a.seq = p_seq;
        if found then found_in := 'awaiting_approval'; exit; end if;
        update laneway.waiting w set rank = -p_priority where w.seq = p_seq;
        if found then found_in := 'waiting'; exit; end if;
        -- A running analysis passes the new priority on to its job.
        update laneway.lease l set rank = -p_priority where l.seq = p_seq and l.job_type like E'\x01%';
        if found then found_in := 'pending'; exit; end if;
        perform from laneway.lease l where l.seq = p_seq;
        if found then found_in := 'running'; return; end if;
        select o.status into found_in from laneway.outcome o where o.seq = p_seq;
        if found then return; end if;
        perform from laneway.jobs j where j.seq = p_seq;
        if not found then found_in := null; return; end if;
        if i = 100 then
            raise exception 'job % changed its state 100 times during the reprioritize', p_seq;
        end if;
    end loop;
    perform laneway.emit(array[p_seq], 'reprioritized');
end $$;

-- Whether the handler of a job may have met the ends of the sub-jobs of that wait, because they had all ended, or because it
-- asked for a later wait after their ends: when it runs again, it must meet the same ends. A handler may ask for several waits
-- at the same time, so a later wait alone does not tell.
create or replace function laneway.is_past_wait(p_seq bigint, p_wait text) returns boolean language sql stable as $$
    select coalesce((
        select h.done_at is not null
            or (m.asked_at is not null and not exists (
                select from laneway.links l
                 where l.owner = p_seq and l.owner_wait = p_wait
                   and (select o.finished_at < m.asked_at from laneway.outcome o where o.seq = l.seq) is not true))
          from laneway.handler_waits h
         cross join lateral (select max(x.asked_at) as asked_at from laneway.handler_waits x
                              where x.seq = p_seq and x.position > h.position) m
         where h.seq = p_seq and h.name = p_wait), false)
$$;

-- Failed or cancelled: queued again with a new retry budget and a growing attempt; ready if it was approved
-- unchanged or needs no approval, else for its analysis or approval; but waiting while an edge of it is open. Edges from
-- parents that were retried before it are opened again. If it failed because of its last sub-jobs, or was cancelled before
-- all of them had ended, those that failed or were cancelled are retried too, and it waits for them again, also for those
-- that were retried before it: p_sub_jobs of them at once, and the others by laneway.advance. `found_in` is `duplicate` when
-- another live job holds its unique_key. `wakes`: the job type to wake. With its owner's rights: no role may write what is
-- left to do.
create or replace function laneway.retry(
    p_seq bigint, p_sub_jobs integer default 100, out found_in text, out wakes text)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
as $$
declare
    v_now  timestamptz := clock_timestamp();
    v_old  laneway.outcome;
    v_job  laneway.jobs;
    v_type laneway.job_types;
    v_missing integer;
    -- The last wait for sub-jobs.
    v_wait text;
    -- The jobs that it waits for again.
    v_again bigint[];
    v_reopened bigint[];
    -- Where to continue with its sub-jobs.
    v_beyond bigint;
    v_wakes text[];
    v_owner bigint;
begin
    -- Before the job itself: retries lock jobs in the order of their numbers, so that they do not wait for each other.
    v_again := laneway.lock_retried_parents(p_seq);
    select * into v_old from laneway.outcome o where o.seq = p_seq for update;
    if not found then
        select v.status into found_in from laneway.jobs_view v where v.seq = p_seq;
        return;
    end if;
    found_in := v_old.status;
    if v_old.status = 'completed' then return; end if;
    select * into v_job from laneway.jobs j where j.seq = p_seq;
    if v_job.unique_key is not null then
        insert into laneway.job_keys values (v_job.workspace, v_job.job_type, v_job.unique_key, p_seq)
        on conflict do nothing;
        if not found then found_in := 'duplicate'; return; end if;
    end if;
    delete from laneway.outcome o where o.seq = p_seq;
    if v_old.claimed_at is not null then
        insert into laneway.attempts (seq, attempt, outcome, lane, worker_id, claimed_at, started_at, finished_at,
                                      reclaimed, error)
        values (p_seq, v_old.attempt, v_old.status, v_old.lane, v_old.worker_id, v_old.claimed_at,
                v_old.started_at, v_old.finished_at, v_old.reclaimed, v_old.error);
    end if;
    -- Its owner waits for it again if it still waits for others of the same call.
    select w.seq into v_owner from laneway.links l join laneway.waiting w on w.seq = l.owner
     where l.seq = p_seq and w.reason = 'sub_jobs' and w.name = l.owner_wait for update of w;
    if found then
        insert into laneway.open_edges (parent, child, rule) values (p_seq, v_owner, 'run') on conflict do nothing;
        if found then
            insert into laneway.countdowns as c (seq, missing) values (v_owner, 1)
            on conflict (seq) do update set missing = c.missing + 1;
        end if;
    end if;
    if v_job.flow is not null then
        insert into laneway.flow_tallies (flow, failed, cancelled)
        values (v_job.flow, -(v_old.status = 'failed')::integer, -(v_old.status = 'cancelled')::integer);
    end if;
    v_wait := (select l.owner_wait from laneway.links l where l.owner = p_seq order by l.seq desc limit 1);
    if v_old.error_type = 'SubJobsFailed' or (v_old.status = 'cancelled' and not laneway.is_past_wait(p_seq, v_wait)) then
        if v_wait is not null then
            select r.reopened, r.beyond, r.wakes into v_reopened, v_beyond, v_wakes
              from laneway.reopen_sub_jobs(p_seq, v_wait, 0, p_sub_jobs) r;
            v_again := v_again || v_reopened;
            update laneway.handler_waits h set done_at = null where h.seq = p_seq and h.name = v_wait and h.kind = 'sub_jobs';
            perform laneway.wake(v_wakes) where v_wakes <> '{}';
        end if;
    end if;
    -- Another retry of this job may have opened some, before it was cancelled again.
    insert into laneway.open_edges (parent, child, rule) select s, p_seq, 'run' from unnest(v_again) s on conflict do nothing;
    get diagnostics v_missing = row_count;
    if v_beyond is not null then
        -- The others in steps of laneway.advance. Until then its countdown has one more, so that it does not start.
        insert into laneway.arrivals (kind, seq, n, beyond, reason) values ('retried', p_seq, 1, v_beyond, v_wait);
        v_missing := v_missing + 1;
        perform laneway.wake(array['']);
    end if;
    insert into laneway.countdowns as c (seq, missing) select p_seq, v_missing where v_missing > 0
    on conflict (seq) do update set missing = c.missing + excluded.missing;
    -- Locked, so that the last of its edges is satisfied before or after this.
    select c.missing into v_missing from laneway.countdowns c where c.seq = p_seq for update;
    if v_missing > 0 then
        insert into laneway.waiting (seq, job_type, rank, attempt, reason, name, sealed, since)
        select p_seq, v_job.job_type, -v_old.priority, v_old.attempt,
               case when w.is_for_subs then 'sub_jobs' else 'jobs' end, case when w.is_for_subs then v_wait end,
               coalesce((select a.decision in ('approved', 'automatic') and a.seal = laneway.seal(v_job.payload, a.analysis)
                           from laneway.approvals a where a.seq = p_seq), false), v_now
          from (select v_beyond is not null
                    or exists (select from laneway.open_edges e
                                cross join lateral (select k.owner from laneway.links k where k.seq = e.parent offset 0) l
                                where e.child = p_seq and l.owner = p_seq) as is_for_subs) w;
    else
        wakes := laneway.requeue_retried(p_seq, -v_old.priority, v_old.attempt, v_now);
    end if;
    select * into v_type from laneway.job_types t where t.name = v_job.job_type;
    if v_type.max_age_s is not null then
        insert into laneway.deadlines (seq, at) values (p_seq, v_now + make_interval(secs => v_type.max_age_s))
        on conflict (seq) do update set at = excluded.at;
    end if;
    perform laneway.emit(array[p_seq], 'retried');
end $$;

-- Makes a job due that waits for its run_at, delayed, snoozed or backing off, and wakes one whose handler sleeps. Otherwise nothing; `found_in` is `due`
-- for a job that waits for something else. `wakes`: the job type to wake; `was_due`, `due`: its run_at before and now.
-- With its owner's rights: it changes run_at of a stored job, which no role may write.
create or replace function laneway.run_now(
    p_seq bigint, out found_in text, out wakes text, out was_due timestamptz, out due timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_now timestamptz := clock_timestamp();
    v_found record;
    v_until timestamptz;
begin
    for i in 1 .. 100 loop
        with gone as (
            delete from laneway.delayed d where d.seq = p_seq and d.run_at > v_now
            returning d.seq, d.job_type, d.rank, d.attempt, d.retries, d.sealed, d.run_at
        ), back as (
            insert into laneway.ready (seq, job_type, fresh, rank, attempt, retries, sealed, ready_at)
            select g.seq, g.job_type, false, g.rank, g.attempt, g.retries, g.sealed, v_now from gone g
        )
        select case when g.job_type like E'\x01%' then 'pending' else 'approved' end, g.job_type, g.run_at, v_now
          into found_in, wakes, was_due, due from gone g;
        if found then
            -- An approval after this must not delay the job again.
            update laneway.jobs j set run_at = v_now where j.seq = p_seq and j.run_at > v_now;
            perform laneway.emit(array[p_seq], 'made_due');
            return;
        end if;
        v_until := (select w.wake_at from laneway.waiting w where w.seq = p_seq and w.reason = 'sleep' for update);
        if v_until is not null then
            wakes := (select r.job_type from laneway.release_waiting(array[p_seq], v_now) r);
            found_in := 'waiting';
            was_due := v_until;
            due := v_now;
            return;
        end if;
        -- In one snapshot: the current state, unless the job began to wait for a time meanwhile.
        select v.status, v.claimed_at is null and v.status in ('approved', 'pending') as waits,
               exists (select from laneway.delayed d where d.seq = p_seq and d.run_at > v_now) as is_delayed
          into v_found from laneway.jobs_view v where v.seq = p_seq;
        if v_found.is_delayed is not true then
            found_in := case when v_found.waits then 'due' else v_found.status end;
            return;
        end if;
    end loop;
    raise exception 'job % changed its state 100 times during the run_now', p_seq;
end $$;
