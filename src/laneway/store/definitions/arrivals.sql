-- What follows the end of a job: in the transaction that ends it as far as no lock and no bound stops it, and the rest in
-- transactions of laneway.advance.

-- Submits the end hooks of these jobs, counts their ends for their flows, and satisfies the edges of their children. Each
-- function that writes `outcome` calls it once for each end, in the same transaction. Ignores jobs that have not ended.
-- Returns as laneway.count_down, and a row `promoted` for each job type to wake because of a hook.
-- Follows at most 1,000 edges of a job and 2,000 of all. With its owner's rights: workers may not write flows.
create or replace function laneway.note_ends(p_seqs bigint[])
returns table (answer text, seq bigint, job_type text)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
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
    v_children bigint[];
    v_counts   integer[];
    v_parents  bigint[];
    v_is_whole boolean;
    v_now      timestamptz := clock_timestamp();
begin
    if exists (select from laneway.end_hooks) then
        return query select 'promoted', 0::bigint, h from laneway.submit_end_hooks(p_seqs) h;
    end if;
    insert into laneway.flow_tallies (flow, completed, failed, cancelled, ended_at)
    select j.flow, count(*) filter (where o.status = 'completed'), count(*) filter (where o.status = 'failed'),
           count(*) filter (where o.status = 'cancelled'), v_now
      from unnest(p_seqs) s
     cross join lateral (select b.flow from laneway.jobs b where b.seq = s and b.flow is not null offset 0) j
     cross join lateral (select x.status from laneway.outcome x where x.seq = s offset 0) o
     group by j.flow;
    if current_setting('transaction_isolation') <> 'read committed' then
        -- The snapshot may be older than an edge: a transaction of laneway.advance looks again.
        insert into laneway.arrivals (kind, seq) select 'ended', s from unnest(p_seqs) s;
        answer := 'arrived'; seq := 0;
        return next;
        return;
    end if;
    -- One read for jobs that no other comes after.
    if not exists (
        select from laneway.open_edges e
         where e.parent between (select min(s) from unnest(p_seqs) s) and (select max(s) from unnest(p_seqs) s)) then
        return;
    end if;
    with met as materialized (
        select e.*, o.status = 'completed' or e.rule = 'run' as is_satisfied
          from unnest(p_seqs) s
         cross join lateral (select x.status from laneway.outcome x where x.seq = s offset 0) o
         cross join lateral (select x.ctid as tid, x.parent, x.child, x.rule from laneway.open_edges x
                              where x.parent = s order by x.child limit 1001) e
         limit 2000
    ), locked as materialized (
        -- Locked rows belong to a job that is being deleted.
        select l.tid from met m
         cross join lateral (select x.ctid as tid from laneway.open_edges x where x.ctid = m.tid
                             offset 0 for update skip locked) l
         where m.is_satisfied
    ), gone as (
        delete from laneway.open_edges e where e.ctid = any (array(select l.tid from locked l)) returning e.child
    ), counted as materialized (
        select g.child, count(*)::integer as n from gone g group by g.child
    )
    select (select array_agg(c.child order by c.child) from counted c), (select array_agg(c.n order by c.child) from counted c),
           array_agg(distinct m.parent),
           coalesce(bool_and(m.is_satisfied) and count(*) < 2000 and count(*) = (select count(*) from gone)
                    and max(m.nth) < 1001, true)
      into v_children, v_counts, v_parents, v_is_whole
      from (select x.*, row_number() over (partition by x.parent) as nth from met x) m;
    if not v_is_whole then
        insert into laneway.arrivals (kind, seq)
        select 'ended', s from unnest(p_seqs) s
         cross join lateral (select x.status from laneway.outcome x where x.seq = s offset 0) o
         where exists (select from laneway.open_edges e
                        where e.parent = s and (o.status = 'completed' or e.rule <> 'hold'));
        if found then
            answer := 'arrived'; seq := 0;
            return next;
        end if;
    end if;
    if v_children is not null then
        return query select c.answer, c.seq, c.job_type from laneway.count_down(v_children, v_counts, v_now) c;
    end if;
end $$;

-- The same for laneway.settle. Reads the edges only where those of these jobs can be, so that jobs without edges and hooks
-- cost two reads. p_job_types, p_statuses: those of the jobs that ended.
create or replace function laneway.follow_ends(
    p_seqs bigint[], p_in_flow boolean, p_job_types text[] default null, p_statuses text[] default null)
returns table (seq bigint, attempt integer, answer text, status text)
language plpgsql volatile
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
begin
    -- An older snapshot may not show an edge or a hook.
    if p_in_flow or current_setting('transaction_isolation') <> 'read committed' or exists (
        select from laneway.end_hooks h
         where (h.job_types is null or h.job_types && p_job_types) and h.statuses && p_statuses) or exists (
        select from laneway.open_edges e
         where e.parent between (select min(s) from unnest(p_seqs) s) and (select max(s) from unnest(p_seqs) s)) then
        return query select n.seq, 0, n.answer, n.job_type from laneway.note_ends(p_seqs) n;
    end if;
end $$;

-- Follows the edges of an ended job after that child, at most p_limit: satisfies them, or cancels the children that wait for
-- a job which failed. Returns where to continue, null at the end, and the job types to wake.
create or replace function laneway.follow_edges(
    p_parent bigint, p_beyond bigint, p_limit integer, p_now timestamptz,
    out beyond bigint, out done integer, out wakes text[], out arrived boolean)
language plpgsql volatile
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = on
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    v_status   text;
    v_children bigint[];
    v_last     bigint;
    v_met      bigint[];
    v_gone     bigint[];
begin
    done := 0;
    arrived := false;
    -- Against a retry of the parent meanwhile.
    select o.status into v_status from laneway.outcome o where o.seq = p_parent for key share skip locked;
    if v_status is null then
        if exists (select from laneway.outcome o where o.seq = p_parent) then beyond := p_beyond; end if;
        return;
    end if;
    select max(x.child), count(*), array_agg(x.child) filter (where v_status = 'completed' or x.rule = 'run'),
           array_agg(x.child) filter (where v_status <> 'completed' and x.rule = 'cancel')
      into v_last, done, v_met, v_children
      from (select e.child, e.rule from laneway.open_edges e where e.parent = p_parent and e.child > p_beyond
             order by e.child limit p_limit) x;
    if done = p_limit then beyond := v_last; end if;
    if v_met is not null then
        with locked as materialized (
            select l.tid from unnest(v_met) s
             cross join lateral (select x.ctid as tid from laneway.open_edges x where x.parent = p_parent and x.child = s
                                 offset 0 for update skip locked) l
        ), gone as (
            delete from laneway.open_edges e where e.ctid = any (array(select l.tid from locked l)) returning e.child
        )
        select array_agg(g.child order by g.child) into v_gone from gone g;
        select coalesce(array_agg(c.job_type) filter (where c.answer = 'promoted'), '{}'), bool_or(c.answer = 'arrived') is true
          into wakes, arrived
          from laneway.count_down(v_gone, array_fill(1, array[cardinality(v_gone)]), p_now) c where v_gone is not null;
        if cardinality(v_gone) is distinct from cardinality(v_met) then
            select least(beyond, min(s) - 1) into beyond from unnest(v_met) s
             where exists (select from laneway.open_edges e where e.parent = p_parent and e.child = s);
        end if;
    end if;
    if v_children is not null then
        v_gone := array(
            select w.seq from unnest(v_children) s
             cross join lateral (select x.seq from laneway.waiting x where x.seq = s and x.reason = 'jobs'
                                 offset 0 for update skip locked) w);
        if cardinality(v_gone) <> cardinality(v_children) then
            select least(beyond, min(s) - 1) into beyond
              from (select s from unnest(v_children) s except select s from unnest(v_gone) s) u
             where exists (select from laneway.waiting w where w.seq = u.s and w.reason = 'jobs')
                -- A retry that has not committed lets it wait again.
                or (exists (select from laneway.outcome o where o.seq = u.s)
                    and (select o.seq from laneway.outcome o where o.seq = u.s for key share skip locked) is null);
        end if;
        select wakes || coalesce(array_agg(c.job_type) filter (where c.answer = 'promoted'), '{}'),
               arrived or bool_or(c.answer = 'arrived') is true
          into wakes, arrived
          from laneway.end_children(v_gone, p_parent, v_status, p_now) c;
    end if;
end $$;

-- Cancels children that the caller has locked in `waiting`, because their parent ended with that status.
create or replace function laneway.end_children(p_seqs bigint[], p_parent bigint, p_status text, p_now timestamptz)
returns table (answer text, seq bigint, job_type text)
language plpgsql volatile
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = on
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
begin
    if p_seqs = '{}' then return; end if;
    with gone as (
        delete from laneway.waiting w where w.seq = any (p_seqs) returning w.seq, w.rank, w.attempt, w.retries
    ), ended as materialized (
        select g.*, j.workspace, j.job_type, j.unique_key from gone g
         cross join lateral (select b.workspace, b.job_type, b.unique_key from laneway.jobs b where b.seq = g.seq offset 0) j
    ), concluded as (
        -- Without a cancel request, as a rejected job.
        insert into laneway.outcome (seq, status, workspace, job_type, priority, attempt, retries, finished_at, cancel_by,
                                     cancel_reason)
        select e.seq, 'cancelled', e.workspace, e.job_type, -e.rank, e.attempt, e.retries, p_now, 'laneway',
               format('after job %s: %s', (select b.id from laneway.jobs b where b.seq = p_parent), p_status)
          from ended e
    )
    delete from laneway.job_keys k
     where k.ctid = any (array(
        select h.tid from ended e
         cross join lateral (select y.ctid as tid from laneway.job_keys y
                              where y.workspace = e.workspace and y.job_type = e.job_type
                                and y.unique_key = e.unique_key and y.seq = e.seq offset 0) h));
    perform laneway.emit(p_seqs, 'ended');
    return query select n.answer, n.seq, n.job_type from laneway.note_ends(p_seqs) n;
end $$;

-- Does at most p_limit of the work that ends of jobs have left. Skips what another transaction has locked. `more`: call
-- again at once; `is_busy`: only locked work is left. With its owner's rights, and so by the database's clock, like
-- note_ends.
create or replace function laneway.advance(
    p_limit integer default 1000,
    out done integer, out more boolean, out is_busy boolean, out job_types text[])
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_now    timestamptz := clock_timestamp();
    v_ids    bigint[];
    v_seqs   bigint[];
    v_counts integer[];
    v_one    record;
    v_step   record;
    v_wakes  text[] := '{}';
begin
    done := 0;
    more := false;
    is_busy := false;
    -- In the order in which they came, so that a busy one does not hide the others: it comes last after each try.
    select array_agg(x.id) into v_ids
      from (select a.id from laneway.arrivals a order by a.id limit p_limit for update skip locked) x;
    if v_ids is null then return; end if;
    with gone as (
        delete from laneway.arrivals a where a.id = any (v_ids) and a.kind = 'counted' returning a.seq, a.n
    ), counted as (
        select g.seq, sum(g.n)::integer as n from gone g group by g.seq
    )
    select array_agg(c.seq order by c.seq), array_agg(c.n order by c.seq) into v_seqs, v_counts from counted c;
    if v_seqs is not null then
        done := cardinality(v_seqs);
        select v_wakes || coalesce(array_agg(c.job_type) filter (where c.answer = 'promoted'), '{}'),
               bool_or(c.answer = 'arrived') is true
          into v_wakes, is_busy
          from laneway.count_down(v_seqs, v_counts, v_now) c;
    end if;
    for v_one in delete from laneway.arrivals a where a.id = any (v_ids) returning a.kind, a.seq, a.n, a.beyond, a.by as actor, a.reason loop
        if done >= p_limit then
            insert into laneway.arrivals (kind, seq, n, beyond, by, reason)
            values (v_one.kind, v_one.seq, v_one.n, v_one.beyond, v_one.actor, v_one.reason);
            more := true;
            continue;
        end if;
        if v_one.kind = 'ended' then
            v_step := laneway.follow_edges(v_one.seq, v_one.beyond, p_limit - done, v_now);
        elsif v_one.kind = 'retried' then
            v_step := laneway.retry_sub_jobs(v_one.seq, v_one.reason, v_one.beyond, least(100, p_limit - done));
        else
            v_step := laneway.cancel_sub_jobs(v_one.seq, v_one.beyond, v_one.actor, v_one.reason, least(100, p_limit - done));
        end if;
        more := more or v_step.arrived;
        if v_step.beyond is not null then
            insert into laneway.arrivals (kind, seq, n, beyond, by, reason)
            values (v_one.kind, v_one.seq, v_one.n, v_step.beyond, v_one.actor, v_one.reason);
            if v_step.beyond > v_one.beyond then more := true; else is_busy := true; end if;
        end if;
        done := done + v_step.done;
        v_wakes := v_wakes || v_step.wakes;
    end loop;
    more := more or cardinality(v_ids) = p_limit;
    job_types := array(select distinct t from unnest(v_wakes) t where t is not null);
end $$;

-- Whether another transaction keeps a live job from being cancelled now.
create or replace function laneway.is_locked(p_seq bigint) returns boolean
language plpgsql volatile
set jit = off
set enable_seqscan = off
as $$
begin
    return (exists (select from laneway.lease x where x.seq = p_seq)
            and (select x.seq from laneway.lease x where x.seq = p_seq for no key update skip locked) is null)
        or (exists (select from laneway.ready x where x.seq = p_seq)
            and (select x.seq from laneway.ready x where x.seq = p_seq for update skip locked) is null)
        or (exists (select from laneway.delayed x where x.seq = p_seq)
            and (select x.seq from laneway.delayed x where x.seq = p_seq for update skip locked) is null)
        or (exists (select from laneway.key_waiters x where x.seq = p_seq)
            and (select x.seq from laneway.key_waiters x where x.seq = p_seq for update skip locked) is null)
        or (exists (select from laneway.awaiting x where x.seq = p_seq)
            and (select x.seq from laneway.awaiting x where x.seq = p_seq for update skip locked) is null)
        or (exists (select from laneway.waiting x where x.seq = p_seq)
            and (select x.seq from laneway.waiting x where x.seq = p_seq for update skip locked) is null);
end $$;

-- Cancels the sub-jobs of a cancelled job after that one, at most p_limit, in the order of their numbers. Each cancel does
-- the same for its own sub-jobs. Leaves them alone if the job was retried since. Returns where to continue, null at the end.
create or replace function laneway.cancel_sub_jobs(
    p_owner bigint, p_beyond bigint, p_by text, p_reason text, p_limit integer,
    out beyond bigint, out done integer, out wakes text[], out arrived boolean)
language plpgsql volatile
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_seqs bigint[] := array(
        select l.seq from laneway.links l where l.owner = p_owner and l.seq > p_beyond order by l.seq limit p_limit);
    v_seq  bigint;
begin
    done := 0;
    arrived := false;
    -- Against a retry of the owner meanwhile.
    perform from laneway.outcome o where o.seq = p_owner and o.status = 'cancelled' for key share skip locked;
    if not found then
        if exists (select from laneway.outcome o where o.seq = p_owner and o.status = 'cancelled') then
            beyond := p_beyond;
            return;
        elsif exists (select from laneway.jobs j where j.seq = p_owner)
              and not exists (select from laneway.lease l where l.seq = p_owner and l.cancel_requested_at is not null) then
            return;
        end if;
    end if;
    done := cardinality(v_seqs);
    arrived := exists (select from laneway.links l where l.owner = any (v_seqs));
    foreach v_seq in array v_seqs loop
        continue when exists (select from laneway.outcome o where o.seq = v_seq);
        -- laneway.cancel would wait for each.
        if laneway.is_locked(v_seq) or (laneway.cancel(v_seq, p_by, p_reason)).found_in = 'busy' then
            -- By a transaction that may stay open, such as one in which its handler finishes it.
            beyond := coalesce(beyond, v_seq - 1);
        end if;
    end loop;
    if beyond is null and done = p_limit then beyond := v_seqs[done]; end if;
end $$;
