-- Edges: a child starts once all its parents have satisfied their edges. Each end deletes its open edges and subtracts them
-- from the countdown of each child. It never waits for a lock: what it cannot do at once becomes an arrival, and
-- laneway.advance does it in a later transaction. A countdown changes only with its row locked, so that of two
-- last ends one finds it at zero.

-- Locks jobs until the transaction ends, so that none of them ends before it: claims and ends skip a locked job, and
-- heartbeats continue. Returns each job, with its status if it has ended. A job that lost its state counts as failed, as
-- in jobs_view.
create or replace function laneway.lock_parents(p_seqs bigint[])
returns table (seq bigint, status text)
language plpgsql volatile
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set lock_timeout = '2s'
as $$
#variable_conflict use_column
declare
    v_left  bigint[] := array(select distinct s from unnest(p_seqs) s order by s);
    v_found bigint[];
    v_ended text[];
begin
    for i in 1 .. 100 loop
        if v_left = '{}' then return; end if;
        -- By number, so that two transactions do not wait for each other. A job that moves meanwhile is found next time.
        with l as (
            select x.seq from laneway.lease x where x.seq = any (v_left) order by x.seq for key share
        ), r as (
            select x.seq from laneway.ready x where x.seq = any (v_left) order by x.seq for key share
        ), d as (
            select x.seq from laneway.delayed x where x.seq = any (v_left) order by x.seq for key share
        ), k as (
            select x.seq from laneway.key_waiters x where x.seq = any (v_left) order by x.seq for key share
        ), a as (
            select x.seq from laneway.awaiting x where x.seq = any (v_left) order by x.seq for key share
        ), w as (
            select x.seq from laneway.waiting x where x.seq = any (v_left) order by x.seq for key share
        ), o as (
            select x.seq, x.status from laneway.outcome x where x.seq = any (v_left) order by x.seq for key share
        )
        select array_agg(f.seq), array_agg(f.status) into v_found, v_ended
          from (select l.seq, null as status from l union all select r.seq, null from r union all select d.seq, null from d
                union all select k.seq, null from k union all select a.seq, null from a
                union all select w.seq, null from w union all select o.seq, o.status from o) f;
        return query select * from unnest(v_found, v_ended);
        -- Not by a search of the array for each: that would cost the square of their number.
        v_left := array(select unnest(v_left) except select unnest(v_found) order by 1);
        if v_left <> '{}' then
            -- In one snapshot, so that no job is taken for lost because it moves.
            v_found := array(select x.seq from unnest(v_left) s cross join lateral laneway.look_for_lost(s - 1, 1) x
                              where x.seq = s and x.id is not null);
            return query select s, 'failed' from unnest(v_found) s;
            v_left := array(select unnest(v_left) except select unnest(v_found) order by 1);
        end if;
    end loop;
    raise exception 'job % changed its state 100 times', v_left[1];
end $$;

-- The parents for which a job with `after_failure` run must wait if it is retried: those that have not ended, because they
-- were retried since they satisfied their edge. They are locked, as by laneway.lock_parents. With its owner's rights:
-- callers may not lock leases.
create or replace function laneway.lock_retried_parents(p_seq bigint) returns bigint[]
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    -- Without deleted ones.
    v_alive bigint[] := array(
        select j.seq from (select distinct p as seq from laneway.links l cross join lateral unnest(l.parents) p
                            where l.seq = p_seq and l.after_failure = 'run') d
         cross join lateral (select b.seq from laneway.jobs b where b.seq = d.seq offset 0) j
         where (select true from laneway.outcome o where o.seq = j.seq) is null
           and (select true from laneway.open_edges e where e.parent = j.seq and e.child = p_seq) is null);
begin
    if v_alive = '{}' then return v_alive; end if;
    return array(select p.seq from laneway.lock_parents(v_alive) p where p.status is null);
end $$;

-- Stores the links of new jobs, which the caller has stored but not placed: their flow, name and parents. Returns those
-- that the caller must not place: waiting ones, and with `cause` those to cancel, because that parent failed before.
-- p_ids, p_workspaces, p_links: of each job in the order of the submit. p_holders: the stored job; another than in p_seqs
-- for a duplicate, whose link is ignored. p_links as p_after of laneway.submit_batch.
create or replace function laneway.link_jobs(
    p_seqs bigint[], p_ids uuid[], p_holders bigint[], p_workspaces text[], p_links jsonb, p_flow bigint,
    p_is_batch boolean, p_now timestamptz)
returns table (place integer, seq bigint, cause bigint)
language plpgsql volatile
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    v_problem  text;
    v_rules    text[] := array(
        select coalesce(x.link ->> 'after_failure', 'cancel') from jsonb_array_elements(p_links) with ordinality as x (link, n)
         order by x.n);
    v_places   integer[];
    v_parents  bigint[];
    -- Those that are not in the flow, and the places of their children.
    v_apart    bigint[];
    v_apart_of integer[];
    -- Parents that other transactions can see.
    v_known    bigint[];
    v_earlier  bigint[];
    -- Parents that have ended.
    v_ended    bigint[];
    v_statuses text[];
    v_is_new   boolean := false;
    v_jobs     integer := (select count(*) from unnest(p_seqs, p_holders) as u (s, h) where u.s = u.h);
begin
    select case when p_is_batch then format('jobs[%s].', e.n - 1) else '' end || e.problem into v_problem
      from (select x.n, case
                when jsonb_typeof(x.link) not in ('object', 'null') then 'after: must be an object'
                when coalesce(x.link ->> 'after_failure', 'run') not in ('cancel', 'run', 'hold')
                then 'after_failure: cancel, run or hold'
                when octet_length(x.link ->> 'name') not between 1 and 128 then 'name: 1 to 128 bytes'
                when coalesce(jsonb_typeof(x.link -> 'after'), 'null') not in ('array', 'null')
                then 'after: must be an array of job ids'
                when p_flow is null and jsonb_typeof(x.link -> 'after') = 'array' and jsonb_array_length(x.link -> 'after') > 1000
                then 'after: at most 1000 jobs outside of a flow'
                else (select format('after: %s is not a job id', coalesce(quote_literal(left(a.id, 60)), 'null'))
                        from jsonb_array_elements_text(
                                 case jsonb_typeof(x.link -> 'after') when 'array' then x.link -> 'after' end) a (id)
                       where a.id is null or a.id !~* '^\{?([0-9a-f]{4}-?){7}[0-9a-f]{4}\}?$' limit 1) end as problem
              from jsonb_array_elements(p_links) with ordinality as x (link, n)) e
     where e.problem is not null order by e.n limit 1;
    if jsonb_array_length(p_links) <> cardinality(p_seqs) then
        v_problem := 'after: must have one entry per job';
    end if;
    if v_problem is not null then
        raise exception using errcode = 'LW001', message = v_problem;
    end if;
    if p_flow is not null then
        -- Then only this transaction sees its jobs. Not in a subtransaction, which has another id: that only costs locks.
        select f.xmin = pg_current_xact_id()::xid and f.created_at >= transaction_timestamp() into v_is_new
          from laneway.flows f where f.seq = p_flow;
    end if;

    with given as materialized (
        select x.n::integer as n, a.id::uuid as id, a.k
          from jsonb_array_elements(p_links) with ordinality as x (link, n)
         cross join lateral jsonb_array_elements_text(
                        case jsonb_typeof(x.link -> 'after') when 'array' then x.link -> 'after' end)
                    with ordinality as a (id, k)
    ), met as materialized (
        select g.n, g.id, g.k, l.n as local, coalesce(l.holder, j.seq) as parent, p_workspaces[g.n] as workspace,
               coalesce(p_workspaces[l.n], j.workspace) as parents_workspace,
               coalesce(l.holder = l.seq, v_is_new and j.flow = p_flow, false) as is_ours,
               p_flow is null or coalesce(l.holder = l.seq, j.flow = p_flow, false) is false as is_apart
          from given g
          left join unnest(p_ids, p_seqs, p_holders) with ordinality as l (id, seq, holder, n) on l.id = g.id
          left join lateral (select b.seq, b.workspace, b.flow from laneway.jobs b
                              where l.id is null and b.id = g.id offset 0) j on true
    )
    select array_agg(m.n order by m.n, m.k), array_agg(m.parent order by m.n, m.k),
           array_agg(m.n) filter (where m.is_apart), array_agg(m.parent) filter (where m.is_apart),
           array_agg(distinct m.parent) filter (where not m.is_ours),
           array_agg(distinct m.parent) filter (where m.is_ours and m.local is null),
           (select case when p_is_batch then format('jobs[%s].', x.n - 1) else '' end
                   || case when x.local >= x.n then format('after: job %s comes later in the batch: submit parents first', x.id)
                           else format('after: no job has the id %s in the workspace %s', x.id, x.workspace) end
              from met x where x.local >= x.n or x.parent is null or x.parents_workspace <> x.workspace
             order by x.n, x.k limit 1)
      into v_places, v_parents, v_apart_of, v_apart, v_known, v_earlier, v_problem
      from met m;
    if v_problem is not null then
        raise exception using errcode = 'LW001', message = v_problem;
    end if;
    if v_known is not null then
        select array_agg(p.seq), array_agg(p.status) into v_ended, v_statuses
          from laneway.lock_parents(v_known) p where p.status is not null;
    end if;
    if v_earlier is not null then
        -- Earlier calls of this transaction cancelled those at once that came after a failed job.
        select v_ended || array_agg(e.seq), v_statuses || array_agg(e.status) into v_ended, v_statuses
          from unnest(v_earlier) s
         cross join lateral (select o.seq, o.status from laneway.outcome o where o.seq = s offset 0) e;
    end if;

    insert into laneway.links (seq, flow, name, parents, after_failure)
    select g.seq, p_flow, g.link ->> 'name', e.parents, coalesce(g.link ->> 'after_failure', 'cancel')
      from rows from (unnest(p_seqs), unnest(p_holders), jsonb_array_elements(p_links)) with ordinality
           as g (seq, holder, link, n)
      left join (select u.n, array_agg(u.parent order by u.k) as parents
                   from unnest(v_places, v_parents) with ordinality as u (n, parent, k) group by u.n) e on e.n = g.n
     where g.holder = g.seq and (p_flow is not null or e.n is not null or g.link ->> 'name' is not null);
    insert into laneway.kept_results (parent, child)
    select distinct u.parent, p_seqs[u.n] from unnest(v_apart_of, v_apart) as u (n, parent) where p_holders[u.n] = p_seqs[u.n];
    return query
    with edges as materialized (
        select distinct u.n, p_seqs[u.n] as child, u.parent, s.status, v_rules[u.n] as rule
          from unnest(v_places, v_parents) as u (n, parent)
          left join unnest(v_ended, v_statuses) as s (seq, status) on s.seq = u.parent
         where p_holders[u.n] = p_seqs[u.n]
    ), remaining as materialized (
        select e.n, e.child, e.parent, e.rule, e.status is not null and e.rule = 'cancel' as is_broken
          from edges e where e.status is null or (e.status <> 'completed' and e.rule <> 'run')
    ), stored as (
        insert into laneway.open_edges (parent, child, rule) select r.parent, r.child, r.rule from remaining r
    ), counted as (
        insert into laneway.countdowns (seq, missing) select r.child, count(*) from remaining r group by r.child
    ), waits as materialized (
        select r.n, r.child, min(r.parent) filter (where r.is_broken) as cause from remaining r group by r.n, r.child
    ), placed as (
        insert into laneway.waiting (seq, job_type, rank, reason, since)
        select w.child, j.job_type, -j.priority, 'jobs', p_now from waits w
         cross join lateral (select b.job_type, b.priority from laneway.jobs b where b.seq = w.child offset 0) j
         where w.cause is null
    )
    select w.n, w.child, w.cause from waits w order by w.n;

    if p_flow is not null then
        perform laneway.count_in_flow(p_flow, v_jobs, coalesce(cardinality(v_parents), 0));
    end if;
end $$;

-- The number of a flow to add jobs to; locks it against deletion. All its jobs are in its workspace.
create or replace function laneway.flow_to_join(p_id uuid, p_workspaces text[]) returns bigint
language plpgsql volatile as $$
declare
    v_flow laneway.flows;
begin
    select * into v_flow from laneway.flows f where f.id = p_id for key share;
    if not found or v_flow.workspace <> any (p_workspaces) then
        raise exception using errcode = 'LW001', message = format(
            'flow: no flow has the id %s in the workspace %s', p_id,
            (select w from unnest(p_workspaces) w where w is distinct from v_flow.workspace limit 1));
    end if;
    return v_flow.seq;
end $$;

-- Returns waiting jobs to the queue, as a submit would place them: the type may require an approval first, or the job may
-- not be due yet. The delete of the row decides which transaction does it. Skips locked rows. Returns the jobs that workers
-- can claim, under the type to wake.
create or replace function laneway.release_waiting(p_seqs bigint[], p_now timestamptz)
returns table (seq bigint, job_type text)
language plpgsql volatile
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = on
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    -- Locked first: a row that changed meanwhile is not deleted by its old place.
    v_seqs  bigint[] := array(
        select w.seq from unnest(p_seqs) s
         cross join lateral (select x.seq from laneway.waiting x where x.seq = s offset 0 for update skip locked) w);
    v_types text[];
    v_gated record;
begin
    if v_seqs = '{}' then return; end if;
    -- Only these read the approval of each job.
    select array_agg(t.name) into v_types from laneway.job_types t where t.approval <> 'never' or t.has_analysis;
    for v_gated in
        select w.seq, w.rank, w.attempt from unnest(v_seqs) s
         cross join lateral (select x.* from laneway.waiting x where x.seq = s and x.reason = 'jobs' offset 0) w
         where w.job_type = any (v_types)
            or exists (select from laneway.approvals a where a.seq = w.seq)
    loop
        delete from laneway.waiting w where w.seq = v_gated.seq;
        seq := v_gated.seq;
        job_type := laneway.requeue_retried(v_gated.seq, v_gated.rank, v_gated.attempt, p_now);
        if job_type is not null then return next; end if;
    end loop;
    return query
    with gone as (
        delete from laneway.waiting w where w.seq = any (v_seqs) returning w.*
    ), waits as (
        -- A sleep is over; an event that was not taken has timed out; all sub-jobs have ended.
        update laneway.handler_waits h set done_at = p_now from gone g
         where h.seq = g.seq and h.name = g.name and g.reason in ('sleep', 'event', 'sub_jobs') and h.done_at is null
    ), due as materialized (
        select g.*, case when g.reason = 'jobs' and j.run_at > p_now then j.run_at end as run_at from gone g
         cross join lateral (select b.run_at from laneway.jobs b where b.seq = g.seq offset 0) j
    ), later as (
        insert into laneway.delayed (seq, job_type, rank, attempt, retries, sealed, run_at)
        select d.seq, d.job_type, d.rank, d.attempt, d.retries, d.sealed, d.run_at from due d where d.run_at is not null
    ), back as (
        insert into laneway.ready (seq, job_type, fresh, rank, attempt, retries, sealed, ready_at)
        select d.seq, d.job_type, false, d.rank, d.attempt, d.retries, d.sealed, p_now from due d where d.run_at is null
    )
    select d.seq, d.job_type from due d where d.run_at is null;
    if exists (select from laneway.watches) then
        perform laneway.emit(v_seqs, 'released');
    end if;
end $$;

-- Subtracts satisfied edges from the countdowns of these children, and releases those that wait for nothing more. A child
-- whose countdown or job is locked gets an arrival instead. Returns promoted jobs as laneway.settle does, and a row
-- `arrived` if there are arrivals.
create or replace function laneway.count_down(p_children bigint[], p_counts integer[], p_now timestamptz)
returns table (answer text, seq bigint, job_type text)
language plpgsql volatile
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = on
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    v_zero   bigint[];
    v_less   bigint[];
    v_counts integer[];
    v_rest   bigint[];
    v_busy   bigint[];
begin
    -- Here and below no array is searched for each child: that would cost the square of their number.
    select array_agg(u.seq) filter (where c.missing <= u.n), array_agg(u.seq) filter (where c.missing > u.n and u.n > 0),
           array_agg(u.n) filter (where c.missing > u.n and u.n > 0), array_agg(u.seq) filter (where c.missing is null)
      into v_zero, v_less, v_counts, v_rest
      from unnest(p_children, p_counts) as u (seq, n)
      left join lateral (select x.missing from laneway.countdowns x where x.seq = u.seq
                         offset 0 for update skip locked) c on true;
    update laneway.countdowns c set missing = c.missing - u.n
      from unnest(v_less, v_counts) as u (seq, n) where c.seq = u.seq;
    delete from laneway.countdowns c where c.seq = any (v_zero);
    if v_rest is not null then
        -- Without a countdown there is nothing to wait for.
        select array_agg(u.seq) filter (where c.seq is not null), v_zero || array_agg(u.seq) filter (where c.seq is null)
          into v_busy, v_zero
          from unnest(v_rest) as u (seq)
          left join lateral (select x.seq from laneway.countdowns x where x.seq = u.seq offset 0) c on true;
    end if;
    if v_zero is not null then
        v_zero := array(
            select w.seq from unnest(v_zero) s
             cross join lateral (select x.seq from laneway.waiting x
                                  where x.seq = s and x.reason in ('jobs', 'sub_jobs') offset 0) w);
        return query select 'promoted', r.seq, r.job_type from laneway.release_waiting(v_zero, p_now) r;
        select v_busy || array_agg(w.seq) into v_busy from unnest(v_zero) s
         cross join lateral (select x.seq from laneway.waiting x where x.seq = s offset 0) w;
    end if;
    if v_busy is not null then
        insert into laneway.arrivals (kind, seq, n)
        select 'counted', x.seq, case when bool_or(x.is_zero) then 0 else max(x.n) end
          from (select u.seq, u.n, false as is_busy, false as is_zero from unnest(p_children, p_counts) as u (seq, n)
                 union all select b, null, true, false from unnest(v_busy) b
                 union all select z, null, false, true from unnest(v_zero) z) x
         group by x.seq having bool_or(x.is_busy);
        answer := 'arrived'; seq := 0; job_type := null;
        return next;
    end if;
end $$;
