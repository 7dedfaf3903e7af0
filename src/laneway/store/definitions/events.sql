-- Logs changes of watched jobs; costs one read if no client watches anything (the most frequent callers make
-- that check themselves, at half the cost).
-- Each function that changes a job calls it last, in the same transaction and with the job's row locked: so the
-- events of one job have ids in the order of its changes. p_at: only if its progress is from that time. With its
-- owner's rights: a role that may change a job needs no access to the log.
create or replace function laneway.emit(p_seqs bigint[], p_change text, p_at timestamptz default null)
returns void language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    if exists (select from laneway.watches)
       -- A repeatable-read snapshot may not show current watches, and the end of a job must not be missed.
       or (p_change = 'finished' and current_setting('transaction_isolation') <> 'read committed') then
        perform laneway.log_changes(p_seqs, p_change, p_at);
    end if;
end $$;

-- The state of these jobs as events show it. Stable: the caller compares it with the log in one snapshot;
-- otherwise an event committed in between would be logged again.
create or replace function laneway.current_state(p_seqs bigint[])
returns table (n bigint, seq bigint, workspace text, lane text, job_type text, created_by text, status text,
               attempt integer, state jsonb)
language plpgsql stable
-- One plan for all calls: planning takes longer than running it.
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = on
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
begin
    return query
    select u.n, v.seq, v.workspace, v.lane, v.job_type, v.created_by, v.status, v.attempt, jsonb_build_object(
           'status', v.status, 'priority', v.priority, 'attempt', v.attempt, 'retries', v.retries,
           'progress', v.progress, 'error', case when jsonb_typeof(v.error) = 'object' then jsonb_build_object(
               'type', v.error -> 'type', 'message', left(v.error ->> 'message', 10000), 'public', v.error -> 'public') end, 'approved_at', v.approved_at,
           'approved_by', v.approved_by, 'expires_at', v.expires_at, 'run_at', v.run_at, 'claimed_by', v.claimed_by,
           'worker', v.worker, 'claimed_at', v.claimed_at, 'last_progress_at', v.last_progress_at,
           'cancel_requested_at', v.cancel_requested_at, 'cancel_reason', v.cancel_reason, 'cancelled_by', v.cancel_by, 'started_at', v.started_at, 'finished_at', v.finished_at,
           'flow', v.flow, 'waits_for', v.waits_for)
      from unnest(p_seqs) with ordinality as u (seq, n)
     -- offset 0: by index, whatever the statistics are.
     cross join lateral (select t.* from laneway.jobs_view t where t.seq = u.seq offset 0) v
     where v.status is not null;
end $$;

-- Logs one event for each watched job, and for every job if all are watched; for more than 50 jobs at once, watches
-- of all jobs get one event per workspace, type and submitter, to stay cheap.
create or replace function laneway.log_changes(p_seqs bigint[], p_change text, p_at timestamptz)
returns void language plpgsql volatile as $$
declare
    v_is_plain boolean := current_setting('transaction_isolation') = 'read committed';
    v_is_all   boolean := exists (select from laneway.watches w where w.seq = 0);
    v_named    bigint[];
    v_single   bigint[];
    v_logged   integer := 0;
    v_more     integer := 0;
begin
    -- Locked until the commit, so that reconciling a watch comes before or after this change. A repeatable-read
    -- snapshot can neither see nor lock current watches.
    v_named := case when not v_is_plain then p_seqs else array(
        select x.seq from (select w.seq from laneway.watches w where w.seq = any (p_seqs) order by w.seq
                              for key share) x) end;
    v_single := case when v_is_all and cardinality(p_seqs) <= 50 then p_seqs else v_named end;
    if v_single <> '{}' then
        insert into laneway.events (seq, name, workspace, lane, job_type, created_by, state)
        select p.seq, 'job.' || case
                   when p.status in ('completed', 'failed', 'cancelled') then p.status
                   when p_change <> 'settled' then p_change
                   else coalesce((select a.outcome from laneway.attempts a
                                   where a.seq = p.seq and a.attempt = p.attempt
                                     and a.outcome in ('released', 'snoozed', 'waited', 'analyzed')), 'returned') end,
               p.workspace, p.lane, p.job_type, p.created_by, p.state
          from laneway.current_state(v_single) p
         where p_at is null or (select g.at = p_at from laneway.progress g where g.seq = p.seq)
         order by p.n;
        get diagnostics v_logged = row_count;
    end if;
    if v_is_all and cardinality(p_seqs) > 50 then
        with met as materialized (
            select j.workspace, j.job_type, j.created_by, count(*) as n from unnest(p_seqs) s (seq)
             cross join lateral (select b.workspace, b.job_type, b.created_by from laneway.jobs b
                                  where b.seq = s.seq offset 0) j
             group by 1, 2, 3)
        insert into laneway.events (name, workspace, lane, job_type, created_by, state)
        select 'jobs.changed', m.workspace, laneway.lane_of(m.job_type), m.job_type, m.created_by,
               jsonb_build_object('change', p_change, 'count', m.n)
          from met m where (select count(*) from met) <= 200
        union all
        select 'jobs.changed', null, null, null, null, '{}' where (select count(*) from met) > 200;
        get diagnostics v_more = row_count;
    end if;
    -- Commits with a notification queue for one lock: for watches of all jobs, whose readers also poll, only one
    -- transaction at a time notifies.
    if v_logged + v_more > 0 and (v_named <> '{}' or pg_try_advisory_xact_lock(5577006791947779412)) then
        perform pg_notify('laneway_events', '');
    end if;
end $$;

-- Logs for watches of all jobs that an ended job is about to be deleted, while its data still exists. Their
-- readers also poll, so it sends no notification. With its owner's rights, like emit.
create or replace function laneway.emit_removal(p_seq bigint)
returns void language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
    if exists (select from laneway.watches w where w.seq = 0) then
        insert into laneway.events (name, workspace, lane, job_type, created_by, state)
        select 'jobs.changed', p.workspace, p.lane, p.job_type, p.created_by, '{"change": "deleted", "count": 1}'
          from laneway.current_state(array[p_seq]) p where p.status in ('completed', 'failed', 'cancelled');
    end if;
end $$;

-- Opens or extends watches, and makes sure that the log has an event of each job. Returns which are settled;
-- the others must be reconciled from the next transaction on.
create or replace function laneway.open_watches(p_seqs bigint[], p_keep_s double precision)
returns table (seq bigint, settled boolean) language plpgsql volatile
-- By index: for a job without events, any other plan reads the whole log.
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
    v_silent bigint[];
begin
    insert into laneway.watches as w (seq, until)
    select distinct s, clock_timestamp() + make_interval(secs => p_keep_s) from unnest(p_seqs) s order by s
    on conflict (seq) do update set until = greatest(w.until, excluded.until);
    -- Watches of all jobs and of the control plane have no state to compare: log the watch itself, so that a
    -- reader starts after its opening.
    insert into laneway.events (name, state)
    select case w.seq when 0 then 'jobs.changed' else 'lanes.changed' end, '{}' from laneway.watches w
     where w.seq = any (p_seqs) and w.seq <= 0 and w.born = pg_current_xact_id();
    v_silent := array(
        select w.seq from laneway.watches w
          left join lateral (select e.id from laneway.events e
                              where e.seq = w.seq and e.id >= w.since_id order by e.id limit 1) e on true
         where w.seq = any (p_seqs) and w.seq > 0 and e.id is null);
    if v_silent <> '{}' then
        -- The end of a job is logged once: an end logged for a watch of all jobs is also the first of this watch.
        update laneway.watches w set since_id = e.id, born = e.xid
          from laneway.current_state(v_silent) p
         cross join lateral (select x.id, x.xid, x.state from laneway.events x
                              where x.seq = p.seq order by x.id desc limit 1) e
         where w.seq = p.seq and p.status in ('completed', 'failed', 'cancelled')
           and e.state - '{worker,run_at}'::text[] = p.state - '{worker,run_at}'::text[];
        -- Log any other state again, also if an older event has the same: events may be missing after that one.
        insert into laneway.events (seq, name, workspace, lane, job_type, created_by, state)
        select p.seq, 'job.' || case when p.status in ('completed', 'failed', 'cancelled') then p.status else 'state' end,
               p.workspace, p.lane, p.job_type, p.created_by, p.state
          from laneway.current_state(v_silent) p
         cross join lateral (select y.since_id from laneway.watches y where y.seq = p.seq offset 0) w
          left join lateral (select x.id from laneway.events x
                              where x.seq = p.seq and x.id >= w.since_id order by x.id limit 1) e on true
         where e.id is null;
        if found then
            -- Another transaction may be logging a change: reconcile corrects it after that.
            update laneway.watches w set settled = false, mark = null where w.seq = any (v_silent);
        end if;
    end if;
    return query select w.seq, w.settled from laneway.watches w where w.seq = any (p_seqs);
end $$;

-- Logs the state of these jobs if it differs from their newest event. Returns the number logged.
create or replace function laneway.log_current_state(p_seqs bigint[]) returns integer language plpgsql volatile
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_n integer;
begin
    insert into laneway.events (seq, name, workspace, lane, job_type, created_by, state)
    select p.seq, 'job.' || case when p.status in ('completed', 'failed', 'cancelled') then p.status else 'state' end,
           p.workspace, p.lane, p.job_type, p.created_by, p.state
      from laneway.current_state(p_seqs) p
      left join lateral (select e.state from laneway.events e where e.seq = p.seq order by e.id desc limit 1) e on true
     where p.state - '{worker,run_at}'::text[] is distinct from e.state - '{worker,run_at}'::text[];
    get diagnostics v_n = row_count;
    return v_n;
end $$;

-- A transaction that checked before a watch existed may commit a change without an event. So while any old
-- enough transaction runs, and once after the last, each job is compared with its newest event. For watches of
-- all jobs it logs that something may have changed. Returns the settled watches. Never waits: a watch that a
-- concurrent transaction has locked is skipped, and the job is compared next time.
create or replace function laneway.reconcile(p_seqs bigint[]) returns setof bigint language plpgsql volatile as $$
declare
    v_own     xid8 := pg_current_xact_id();
    v_held    bigint[];
    v_horizon xid8;
    v_logged  integer;
    v_more    integer;
begin
    v_held := array(
        select x.seq from (select w.seq from laneway.watches w where w.seq = any (p_seqs) and not w.settled
                            order by w.seq for update skip locked) x);
    if v_held <> '{}' then
        update laneway.watches w set mark = v_own
         where w.seq = any (v_held) and w.mark is null;
        -- First, in a separate statement: the comparison then sees transactions that have ended by now.
        v_horizon := pg_snapshot_xmin(pg_current_snapshot());
        v_logged := laneway.log_current_state(v_held);
        insert into laneway.events (name, state)
        select case w.seq when 0 then 'jobs.changed' else 'lanes.changed' end, '{}' from laneway.watches w
         where w.seq = any (v_held) and w.seq <= 0 and w.mark < v_own and w.mark <= v_horizon;
        get diagnostics v_more = row_count;
        update laneway.watches w set settled = true where w.seq = any (v_held) and w.mark <= v_horizon;
        if v_logged + v_more > 0 then
            perform pg_notify('laneway_events', '');
        end if;
    end if;
    return query select s from unnest(p_seqs) s
                  where not exists (select from laneway.watches w where w.seq = s and not w.settled);
end $$;

-- The visible transactions of the log. It ends with the newest one in the log: PostgreSQL may assign later ids
-- again after a crash, because they may not have reached the disk.
create or replace function laneway.log_snapshot() returns pg_snapshot language plpgsql volatile
set jit = off
set enable_seqscan = off
as $$
begin
    -- In one statement, so in one snapshot. offset 0: evaluated once. Only events from a dump of another cluster
    -- lie beyond PostgreSQL's own end.
    return (
        select format('%s:%s:%s', coalesce(r.first, s.beyond), s.beyond, r.list)::pg_snapshot
          from (select least(
                    pg_snapshot_xmax(pg_current_snapshot())::text::bigint,
                    greatest(l.pruned_xid::text::bigint,
                             1 + (select e.xid from laneway.events e where e.xid >= l.pruned_xid
                                   order by e.xid desc limit 1)::text::bigint, 1)) as beyond
                  from laneway.event_log l offset 0) s
         cross join lateral (
            select min(x.n) as first, string_agg(x.n::text, ',' order by x.n) as list
              from (select y::text::bigint as n from pg_snapshot_xip(pg_current_snapshot()) y) x
             where x.n < s.beyond) r);
end $$;

-- The identity of this log, as eight digits. It differs after a restore: in the same cluster the table or the database
-- has another oid, elsewhere the cluster has another identifier, and a standby or a backup that lacks commits has
-- another timeline. Ids of events, jobs and transactions from another log are meaningless here.
create or replace function laneway.log_identity() returns text language sql stable as $$
    select left(md5(concat_ws('/',
               (select c.system_identifier from pg_control_system() c),
               (select d.oid from pg_database d where d.datname = current_database()),
               to_regclass('laneway.events')::oid,
               case when not pg_is_in_recovery() then left(pg_walfile_name(pg_current_wal_lsn()), 8) end)), 8)
$$;

-- Events that became visible after the snapshot p_prev, up to p_next (null: now), by id, after p_after. The first
-- row has only p_next. Old transactions do not make it read events again.
create or replace function laneway.events_between(p_prev pg_snapshot, p_next pg_snapshot, p_after bigint, p_limit integer)
returns table (next pg_snapshot, id bigint, seq bigint, name text, workspace text, lane text, job_type text,
               created_by text, state jsonb)
language plpgsql volatile
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    v_next pg_snapshot := coalesce(p_next, laneway.log_snapshot());
begin
    next := v_next;
    return next;
    return query
    select null::pg_snapshot, e.id, e.seq, e.name, e.workspace, e.lane, e.job_type, e.created_by, e.state
      from (select y.* from laneway.events y where y.xid >= pg_snapshot_xmax(p_prev)
            union all
            select y.* from (select pg_snapshot_xip(p_prev) as xid offset 0) x
             cross join lateral (select z.* from laneway.events z where z.xid = x.xid offset 0) y) e
     where pg_visible_in_snapshot(e.xid, v_next) and e.id > p_after
     order by e.id limit p_limit;
end $$;

-- Deletes events that a dump brought from another cluster, with transaction ids that are still to come here. They
-- are meaningless, and would block reading until then. Each statement computes the current end again: events
-- committed in between belong to this cluster. Returns the number of events.
create or replace function laneway.delete_foreign_events(p_limit integer) returns integer language plpgsql volatile
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_newest bigint;
    v_events integer;
begin
    with gone as (
        delete from laneway.events e where e.ctid = any (array(
            select x.ctid from laneway.events x
             where x.xid >= pg_snapshot_xmax(pg_current_snapshot()) order by x.xid limit p_limit))
        returning e.id)
    select max(g.id), count(*) into v_newest, v_events from gone g;
    update laneway.event_log l
       set pruned_id = greatest(l.pruned_id, v_newest), pruned_xid = '0', old_at = null, old_xid = null,
           new_at = null, new_xid = null
     where v_events > 0 or greatest(l.pruned_xid, l.old_xid, l.new_xid) >= pg_snapshot_xmax(pg_current_snapshot());
    -- Keep the watches: a stream may have started on one.
    update laneway.watches w set born = pg_current_xact_id(), mark = null
     where greatest(w.born, w.mark) >= pg_snapshot_xmax(pg_current_snapshot());
    return v_events;
end $$;

-- Deletes events that all readers could see for at least p_keep_s, and expired watches: at most p_limit of each.
-- Returns how many; null: not the leader. With its owner's rights, like delete_expired.
create or replace function laneway.prune_events(
    p_holder uuid, p_epoch bigint, p_keep_s double precision, p_limit integer)
returns integer language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_now    timestamptz := clock_timestamp();
    v_keep   interval := make_interval(secs => greatest(p_keep_s, 60));
    v_log    laneway.event_log;
    v_newest bigint;
    v_beyond bigint;
    v_events integer;
    v_watches integer;
    v_foreign integer;
begin
    if not laneway.is_leader(p_holder, p_epoch) then return null; end if;
    v_foreign := laneway.delete_foreign_events(p_limit);
    select * into v_log from laneway.event_log for update;
    if v_log.new_at is null or v_log.new_at <= v_now - v_keep then
        update laneway.event_log l
           set old_at = l.new_at, old_xid = l.new_xid, new_at = v_now,
               new_xid = pg_snapshot_xmin(pg_current_snapshot())
        returning * into v_log;
    end if;
    with gone as (
        delete from laneway.events e where e.ctid = any (array(
            select x.ctid from laneway.events x
             where v_log.old_at <= v_now - v_keep and x.xid < v_log.old_xid order by x.xid limit p_limit))
        returning e.id, e.xid)
    select max(g.id), 1 + max(g.xid::text::bigint), count(*) into v_newest, v_beyond, v_events from gone g;
    if v_events > 0 then
        update laneway.event_log l
           set pruned_id = greatest(l.pruned_id, v_newest), pruned_xid = greatest(l.pruned_xid, v_beyond::text::xid8);
    end if;
    delete from laneway.watches w where w.seq = any (array(
        select x.seq from laneway.watches x where x.until < v_now order by x.until limit p_limit
           for update skip locked));
    get diagnostics v_watches = row_count;
    return v_foreign + v_events + v_watches;
end $$;
