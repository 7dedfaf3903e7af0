-- Whether this process is the leader of this epoch: each write of a leader checks it in the same statement.
create or replace function laneway.is_leader(p_holder uuid, p_epoch bigint, p_now timestamptz default null)
returns boolean language sql volatile as $$
    select exists (select from laneway.leader r where r.holder = p_holder and r.epoch = p_epoch
                      and r.held_until > coalesce(p_now, clock_timestamp()))
$$;

-- Deletes ended jobs with all their data, except jobs that others still need and jobs of a running flow; returns their ids.
-- The outcome row decides a race with a retry.
create or replace function laneway.remove_jobs(p_seqs bigint[]) returns setof uuid
language plpgsql volatile
set jit = off
set enable_seqscan = off
as $$
declare
    v_seqs bigint[];
begin
    -- Locked first: no edge from a locked job is added, and each lookup after this sees all that there are.
    perform from laneway.outcome o where o.seq = any (p_seqs) order by o.seq for update;
    v_seqs := array(select s from unnest(p_seqs) s
                     where not laneway.is_needed(s) and not laneway.is_flow_kept(s, 0, clock_timestamp()));
    if exists (select from laneway.links l where l.seq = any (v_seqs))
       or exists (select from laneway.kept_results k where k.parent = any (v_seqs))
       or exists (select from laneway.open_edges e where e.parent = any (v_seqs)) then
        perform laneway.remove_links(v_seqs);
    end if;
    return query
    with dead as materialized (
        delete from laneway.outcome o where o.seq = any (v_seqs) returning o.seq
    ), gone_attempts as (
        delete from laneway.attempts a where a.seq = any (array(select d.seq from dead d))
    ), gone_progress as (
        delete from laneway.progress p where p.seq = any (array(select d.seq from dead d))
    ), gone_logs as (
        delete from laneway.logs n where n.seq = any (array(select d.seq from dead d))
    ), gone_steps as (
        delete from laneway.steps s where s.seq = any (array(select d.seq from dead d))
    ), gone_waits as (
        delete from laneway.handler_waits h where h.seq = any (array(select d.seq from dead d))
    ), gone_approvals as (
        delete from laneway.approvals a where a.seq = any (array(select d.seq from dead d))
    ), gone_decisions as (
        delete from laneway.decisions c where c.seq = any (array(select d.seq from dead d))
    ), gone_writers as (
        delete from laneway.schedule_jobs w where w.seq = any (array(select d.seq from dead d))
    ), gone_deadlines as (
        delete from laneway.deadlines n where n.seq = any (array(select d.seq from dead d))
    ), gone_periods as (
        -- In the order of a batch that takes ended periods again, so that they do not deadlock.
        delete from laneway.unique_periods u
         where u.ctid = any (array(
            select x.ctid from laneway.unique_periods x where x.seq = any (array(select d.seq from dead d))
             order by x.workspace, x.job_type, x.unique_key for update))
    )
    delete from laneway.jobs j where j.seq = any (array(select d.seq from dead d)) returning j.id;
end $$;

-- One step of the walk over ended jobs, newest first: reads p_scan outcomes before p_before and deletes at most
-- p_limit that the policy of their type no longer keeps.
-- p_types, p_counts: how many jobs of each type with a keep_count the walk has seen. `before`: where to continue,
-- null at the end. Null `removed`: not the leader, nothing done. Skips locked rows.
-- With its owner's rights and only by the database's clock, so that a worker can delete only what the policy
-- expires; nothing is deleted in its first minute, so that waiting clients see the end of a job.
create or replace function laneway.delete_expired(
    p_holder uuid, p_epoch bigint, p_before bigint, p_types text[], p_counts bigint[],
    p_scan integer, p_limit integer,
    out removed integer, out before bigint, out types text[], out counts bigint[])
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_now  timestamptz := clock_timestamp();
    v_seqs bigint[];
begin
    if not laneway.is_leader(p_holder, p_epoch) then return; end if;
    with page as materialized (
        select o.seq, o.status, o.job_type, o.finished_at from laneway.outcome o
         where o.seq < p_before order by o.seq desc limit p_scan
    ), policy as materialized (
        -- An unpublished type has the default retention.
        select d.job_type, coalesce(c.n, 0) as met, t.keep_count,
               case when t.name is null then 604800 else t.keep_completed_s end as completed_s,
               case when t.name is null then 604800 else t.keep_cancelled_s end as cancelled_s,
               case when t.name is null then 2592000 else t.keep_failed_s end as failed_s
          from (select distinct p.job_type from page p) d
          left join laneway.job_types t on t.name = d.job_type
          left join unnest(p_types, p_counts) c (job_type, n) on c.job_type = d.job_type
    ), aged as materialized (
        select x.*, coalesce(x.age_s > x.keep_s, false) as is_old
          from (select p.seq, y.job_type, y.met, y.keep_count,
                       extract(epoch from v_now - p.finished_at) as age_s,
                       case p.status when 'completed' then y.completed_s when 'cancelled' then y.cancelled_s
                                     else y.failed_s end as keep_s
                  from page p join policy y on y.job_type = p.job_type) x
    ), judged as materialized (
        -- A job is kept while it is unique for a period: duplicates return it. A job of a flow is kept as long as the
        -- job of the flow that ended last.
        select a.*, case when (a.is_old or coalesce(a.met + a.place > a.keep_count, false)) and a.age_s > 60
                    then (select true from laneway.unique_periods u where u.seq = a.seq and u.until > v_now limit 1) is null
                         and not laneway.is_needed(a.seq) and not laneway.is_flow_kept(a.seq, a.keep_s, v_now)
                    else false end as is_doomed
          from (select b.*, count(*) filter (where not b.is_old)
                            over (partition by b.job_type order by b.seq desc) as place from aged b) a
    ), doomed as materialized (
        select j.seq from judged j where j.is_doomed order by j.seq desc limit p_limit
    ), cut as materialized (
        select case when (select count(*) from judged j where j.is_doomed) > p_limit
                    then (select min(d.seq) from doomed d)
                    else (select min(p.seq) from page p) end as seq,
               (select count(*) from judged j where j.is_doomed) > p_limit
                 or (select count(*) from page) >= p_scan as is_more
    ), held as materialized (
        select h.seq from doomed d
         cross join lateral (select o.seq from laneway.outcome o where o.seq = d.seq
                             offset 0 for update skip locked) h
    ), met as materialized (
        select j.job_type, count(*) filter (where not j.is_old) as n
          from judged j, cut c where j.keep_count is not null and j.seq >= c.seq group by j.job_type
    ), total as materialized (
        select m.job_type, sum(m.n)::bigint as n
          from (select * from met union all select * from unnest(p_types, p_counts) g (job_type, n)) m
         group by m.job_type
    )
    select array(select h.seq from held h), (select case when c.is_more then c.seq end from cut c),
           array(select t.job_type from total t order by t.job_type),
           array(select t.n from total t order by t.job_type)
      into v_seqs, before, types, counts;
    removed := (select count(*) from laneway.remove_jobs(v_seqs));
end $$;

-- Fails jobs older than their type's max_age: waiting ones at once, running ones of one lane (so that two passes
-- lock slot counters in the same order), whose workers are fenced at their next heartbeat. Skips locked rows
-- until another pass. Null `ended`: not the leader, nothing done. `job_types`: types of jobs that got a key.
-- `more`: call again at once.
create or replace function laneway.expire_overaged(
    p_holder uuid, p_epoch bigint, p_limit integer, p_now timestamptz default null,
    out ended integer, out job_types text[], out more boolean)
language plpgsql volatile
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    v_now      timestamptz := coalesce(p_now, clock_timestamp());
    v_due      bigint[];
    v_gone     bigint[];
    v_errors   text[];
    v_lane     text;
    v_seqs     bigint[];
    v_attempts integer[];
    v_reasons  text[];
    v_spaces   text[];
    v_keys     text[];
    v_types    text[];
begin
    more := false;
    if not laneway.is_leader(p_holder, p_epoch, p_now) then return; end if;
    ended := 0;
    select array_agg(d.seq), array_agg(d.error) into v_due, v_errors
      from (select n.seq, json_build_object('public', true, 'type', 'MaxAge', 'message', format('older than max_age of %s s',
                       trim_scale(round(coalesce(t.max_age_s, extract(epoch from n.at - j.created_at))::numeric, 3))))::text as error
              from (select x.seq, x.at from laneway.deadlines x where x.at <= v_now
                     order by x.at limit p_limit for update skip locked) n
              -- offset 0: by index, whatever the statistics are.
              left join lateral (select b.job_type, b.created_at from laneway.jobs b where b.seq = n.seq offset 0) j on true
              left join lateral (select x.max_age_s from laneway.job_types x
                                  where x.name = j.job_type offset 0) t on true) d;
    if v_due is null then return; end if;

    with due as materialized (
        select * from unnest(v_due, v_errors) as d (seq, error)
    ), held as materialized (
        select r.tid from due d cross join lateral (
            select w.ctid as tid from laneway.ready w where w.seq = d.seq offset 0 for update skip locked) r
    ), held_delayed as materialized (
        select r.tid from due d cross join lateral (
            select w.ctid as tid from laneway.delayed w where w.seq = d.seq offset 0 for update skip locked) r
    ), held_waiters as materialized (
        select r.tid from due d cross join lateral (
            select w.ctid as tid from laneway.key_waiters w where w.seq = d.seq offset 0 for update skip locked) r
    ), held_awaiting as materialized (
        select r.tid from due d cross join lateral (
            select w.ctid as tid from laneway.awaiting w where w.seq = d.seq offset 0 for update skip locked) r
    ), held_waiting as materialized (
        select r.tid from due d cross join lateral (
            select w.ctid as tid from laneway.waiting w where w.seq = d.seq offset 0 for update skip locked) r
    ), gone as (
        delete from laneway.ready w where w.ctid = any (array(select tid from held))
        returning w.seq, w.rank, w.attempt, w.retries
    ), gone_delayed as (
        delete from laneway.delayed w where w.ctid = any (array(select tid from held_delayed))
        returning w.seq, w.rank, w.attempt, w.retries
    ), gone_waiters as (
        delete from laneway.key_waiters w where w.ctid = any (array(select tid from held_waiters))
        returning w.seq, w.rank, w.attempt, w.retries
    ), gone_awaiting as (
        delete from laneway.awaiting w where w.ctid = any (array(select tid from held_awaiting))
        returning w.seq, w.rank, w.attempt, 0 as retries
    ), gone_waiting as (
        delete from laneway.waiting w where w.ctid = any (array(select tid from held_waiting))
        returning w.seq, w.rank, w.attempt, w.retries
    ), all_gone as materialized (
        select g.*, d.error, j.workspace, j.job_type, j.unique_key, j.concurrency_key
          from (select * from gone union all select * from gone_delayed union all select * from gone_waiters
                union all select * from gone_awaiting union all select * from gone_waiting) g
          join due d on d.seq = g.seq
         cross join lateral (select b.* from laneway.jobs b where b.seq = g.seq offset 0) j
    ), freed as (
        delete from laneway.job_keys k
         where k.ctid = any (array(
            select h.tid from all_gone g
             cross join lateral (select y.ctid as tid from laneway.job_keys y
                                  where y.workspace = g.workspace and y.job_type = g.job_type
                                    and y.unique_key = g.unique_key and y.seq = g.seq offset 0) h))
    ), concluded as (
        insert into laneway.outcome (seq, status, workspace, job_type, priority, attempt, retries, finished_at, error,
                                     error_type)
        select g.seq, 'failed', g.workspace, g.job_type, -g.rank, g.attempt, g.retries, v_now, g.error::jsonb,
               g.error::jsonb ->> 'type'
          from all_gone g
    )
    select count(*), array_agg(g.workspace) filter (where g.concurrency_key is not null),
           array_agg(g.concurrency_key) filter (where g.concurrency_key is not null),
           array_agg(g.job_type) filter (where g.concurrency_key is not null), array_agg(g.seq)
      into ended, v_spaces, v_keys, v_types, v_gone from all_gone g;
    if v_gone is not null then
        perform laneway.emit(v_gone, 'ended');
        job_types := array(select n.job_type from laneway.note_ends(v_gone) n where n.answer = 'promoted');
    end if;
    -- One of them may have been about to take its key.
    perform laneway.promote_next_for_key(k.workspace, k.concurrency_key, k.job_type)
       from (select distinct * from unnest(v_spaces, v_keys, v_types) as u (workspace, concurrency_key, job_type)) k;

    select l.lane into v_lane from unnest(v_due) d (seq)
     cross join lateral (select x.lane from laneway.lease x where x.seq = d.seq offset 0 for update skip locked) l
     limit 1;
    if found then
        select array_agg(l.seq), array_agg(l.attempt), array_agg(d.error) into v_seqs, v_attempts, v_reasons
          from unnest(v_due, v_errors) d (seq, error)
         cross join lateral (select x.seq, x.attempt from laneway.lease x
                              where x.seq = d.seq and x.lane = v_lane offset 0 for update skip locked) l;
        job_types := coalesce(job_types, '{}') || array(
            select distinct s.status
              from laneway.settle(v_seqs, v_attempts, array_fill('giveup'::text, array[cardinality(v_seqs)]), null,
                                  v_reasons, null, null, p_now) s where s.answer in ('promoted', 'freed'));
        ended := ended + cardinality(v_seqs);
    end if;

    delete from laneway.deadlines n
     where n.seq = any (v_due)
       and ((select true from laneway.outcome o where o.seq = n.seq)
            or (select true from laneway.jobs j where j.seq = n.seq) is null);
    more := ended > 0 and (select true from laneway.deadlines n where n.at <= v_now limit 1) is true;
end $$;

-- Deletes slots of schedules older than 30 days, except the newest of each, control changes older than a year,
-- except those of existing schedules, expired sessions and login links, responses to POST requests older than 24
-- hours, events after their retention, ended periods of unique jobs, losses of ended jobs, flows that never had a job, and
-- started jobs that are still counted for principals: at most p_limit of each, and of
-- the last 10,000 of each of ten principals. Returns how many; null: not the leader. With its owner's rights and by the
-- database's clock, like delete_expired. Reads no more than it deletes, and a row per schedule.
create or replace function laneway.prune_records(p_holder uuid, p_epoch bigint, p_limit integer)
returns integer language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_now timestamptz := clock_timestamp();
    v_slots integer;
    v_change bigint;
    v_changes integer;
    v_ended integer;
    v_links integer;
    v_answers integer;
    v_periods integer;
    v_suspects integer;
    v_from uuid := gen_random_uuid();
begin
    if not laneway.is_leader(p_holder, p_epoch) then return null; end if;
    with recursive names as (
        (select s.schedule from laneway.schedule_slots s order by s.schedule limit 1)
        union all
        select (select s.schedule from laneway.schedule_slots s where s.schedule > n.schedule
                 order by s.schedule limit 1)
          from names n where n.schedule is not null
    )
    delete from laneway.schedule_slots d
     where d.ctid = any (array(
        select x.tid from names n
         cross join lateral (
            select s.ctid as tid from laneway.schedule_slots s
             where s.schedule = n.schedule and s.slot < v_now - interval '30 days'
               and s.slot < (select m.slot from laneway.schedule_slots m where m.schedule = n.schedule
                              order by m.slot desc limit 1)
               and s.at < v_now - interval '30 days'
             order by s.slot limit p_limit for update skip locked) x
         limit p_limit));
    get diagnostics v_slots = row_count;
    -- The lowest numbers are the oldest. Also reads from a random number on, because the first ones may be kept: the
    -- writers of an existing schedule may not approve its jobs, however old the change is.
    v_change := (select c.id from laneway.control_history c order by c.id limit 1);
    v_change := v_change + floor(random() * (
        (select c.id from laneway.control_history c order by c.id desc limit 1) - v_change));
    delete from laneway.control_history h
     where h.id = any (array(
        select x.id from (
            (select c.* from laneway.control_history c order by c.id limit p_limit)
            union
            (select c.* from laneway.control_history c where c.id > v_change order by c.id limit p_limit)) x
         where x.at < v_now - interval '1 year'
           and (x.kind <> 'schedule' or (select true from laneway.schedules s where s.name = x.name) is null)
         order by x.id limit p_limit));
    get diagnostics v_changes = row_count;
    -- Expired rows have no effect: deleting them only frees space.
    delete from laneway.sessions s
     where s.digest = any (array(
        select x.digest from laneway.sessions x where x.expires_at < v_now
         order by x.expires_at limit p_limit for update skip locked));
    get diagnostics v_ended = row_count;
    delete from laneway.login_links l
     where l.digest = any (array(
        select x.digest from laneway.login_links x where x.expires_at < v_now
         order by x.expires_at limit p_limit for update skip locked));
    get diagnostics v_links = row_count;
    delete from laneway.idempotency i
     where i.ctid = any (array(
        select x.ctid from laneway.idempotency x where x.made_at < v_now - interval '24 hours'
         order by x.made_at limit p_limit for update skip locked));
    get diagnostics v_answers = row_count;
    delete from laneway.unique_periods u
     where u.ctid = any (array(
        select x.ctid from laneway.unique_periods x where x.until < v_now
         order by x.until limit p_limit for update skip locked));
    get diagnostics v_periods = row_count;
    -- From a random worker on, and then from the first: reads little more than it may delete, and live workers
    -- hide the others from one pass only.
    delete from laneway.suspects s
     where s.seq = any (array(
        select x.seq from (
            (select y.seq, y.lost_at from laneway.suspects y where y.lost_with >= v_from order by y.lost_with limit p_limit)
            union all
            (select y.seq, y.lost_at from laneway.suspects y where y.lost_with < v_from order by y.lost_with limit p_limit)
            limit p_limit) x
         where x.lost_at < v_now - interval '1 hour'
           and ((select true from laneway.outcome o where o.seq = x.seq)
                or (select true from laneway.jobs j where j.seq = x.seq) is null)));
    get diagnostics v_suspects = row_count;
    return laneway.remove_unused_flows(p_limit, v_now) + v_slots + v_changes + v_ended + v_links + v_answers + v_periods + v_suspects
           + laneway.delete_expired_events(p_limit) + laneway.sweep_all_queued(10);
end $$;
