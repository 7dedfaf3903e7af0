-- A running job holds its key. A job that finds its key held is parked in key_waiters, in a transaction that has
-- the holder's row locked: the end of a hold waits for that row and so sees all waiters. Then the first waiter
-- of each job type returns to ready, and the one that is claimed first takes the key: a job that cannot run
-- does not keep the key from the others. Claims, ends of attempts and reprioritize lock holders; a submit in a
-- caller's transaction never does.
-- So waiters of a free key always have a job of their type in ready. The claim or the cancel of that job locks its
-- row, and then takes the key or promotes the next one. A job is parked behind a job in ready only by a transaction
-- that has that row locked: otherwise the other one may be leaving, and does not see who comes to wait for it.

-- Takes the key of each of these claimed jobs, in order, or parks the job; also parks it, with the key free, if an
-- earlier job of its type is waiting to take it. Returns the jobs without their key: parked, or in ready again.
create or replace function laneway.take_keys(p_met laneway.key_waiters[]) returns bigint[]
language plpgsql volatile
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = on
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    v_won   bigint[];
    v_early laneway.key_waiters[];
    v_job   laneway.key_waiters;
    v_first laneway.key_waiters;
    -- Jobs that leave their key to an earlier one; jobs of other types that are in ready again.
    v_yield laneway.key_waiters[];
    v_back  bigint[];
    v_lost  bigint[];
begin
    with won as (
        insert into laneway.key_holders as h (workspace, concurrency_key, seq)
        select distinct on (m.workspace, m.concurrency_key) m.workspace, m.concurrency_key, m.seq
          from unnest(p_met) m
         order by m.workspace, m.concurrency_key, m.rank, m.seq
        -- Changes nothing if another job holds the key, and locks its row.
        on conflict (workspace, concurrency_key) do update set seq = h.seq where false
        returning h.seq)
    select array_agg(w.seq) into v_won from won w;
    -- Read with the key locked, so after the transaction that freed it: an earlier job of the same type may wait for
    -- it, or may have returned since this claim read it, and goes first. Returned jobs are few.
    select array_agg(m) into v_early
      from unnest(p_met) m
     where m.seq = any (v_won)
       and (exists (select from laneway.key_waiters w
                     where w.workspace = m.workspace and w.concurrency_key = m.concurrency_key
                       and w.job_type = m.job_type and (w.rank, w.seq) < (m.rank, m.seq))
            or exists (select from (select r.seq from laneway.ready r
                                     where r.job_type = m.job_type and not r.fresh
                                       and (r.rank, r.seq) < (m.rank, m.seq)
                                     order by r.rank, r.seq limit 100) r
                        cross join lateral (select from laneway.jobs b
                                             where b.seq = r.seq and b.workspace = m.workspace
                                               and b.concurrency_key = m.concurrency_key offset 0) b));
    foreach v_job in array coalesce(v_early, '{}') loop
        -- Locks one in ready, or else moves the first waiter there. One that another transaction has locked is passed:
        -- it is being claimed, changed or cancelled, maybe in a transaction that stays open.
        perform from (select r.seq from laneway.ready r
                       where r.job_type = v_job.job_type and not r.fresh and (r.rank, r.seq) < (v_job.rank, v_job.seq)
                       order by r.rank, r.seq limit 100) r
         cross join lateral (select from laneway.jobs b
                              where b.seq = r.seq and b.workspace = v_job.workspace
                                and b.concurrency_key = v_job.concurrency_key offset 0) b
         cross join lateral (select from laneway.ready x where x.seq = r.seq offset 0 for update skip locked) x
         limit 1;
        if not found then
            select w.* into v_first from laneway.key_waiters w
             where w.workspace = v_job.workspace and w.concurrency_key = v_job.concurrency_key
               and w.job_type = v_job.job_type and (w.rank, w.seq) < (v_job.rank, v_job.seq)
             order by w.rank, w.seq limit 1 for update skip locked;
            continue when not found;
            delete from laneway.key_waiters w where w.seq = v_first.seq;
            insert into laneway.ready (seq, job_type, fresh, rank, attempt, retries, sealed, ready_at)
            values (v_first.seq, v_first.job_type, false, v_first.rank, v_first.attempt, v_first.retries,
                    v_first.sealed, v_first.ready_at);
            perform laneway.wake(array[v_first.job_type]);
        end if;
        v_yield := v_yield || v_job;
    end loop;
    if v_yield is not null then
        delete from laneway.key_holders h
         using unnest(v_yield) e
         where h.workspace = e.workspace and h.concurrency_key = e.concurrency_key;
        v_won := array(select w from unnest(v_won) w where w <> all (array(select e.seq from unnest(v_yield) e)));
        -- The earlier job is of one type only. Jobs of others, with no holder to wait for, are claimed again.
        with back as (
            insert into laneway.ready (seq, job_type, fresh, rank, attempt, retries, sealed, ready_at)
            select m.seq, m.job_type, false, m.rank, m.attempt, m.retries, m.sealed, m.ready_at
              from unnest(p_met) m, unnest(v_yield) e
             where m.workspace = e.workspace and m.concurrency_key = e.concurrency_key and m.job_type <> e.job_type
            returning seq)
        select array_agg(b.seq) into v_back from back b;
    end if;
    with aside as (
        insert into laneway.key_waiters
        select m.* from unnest(p_met) m where m.seq <> all (coalesce(v_won, '{}') || coalesce(v_back, '{}'))
        returning seq)
    select array_agg(a.seq) into v_lost from aside a;
    return coalesce(v_lost, '{}') || coalesce(v_back, '{}');
end $$;

-- Ends the hold of these jobs on their keys, and moves the first waiter of each type to ready; returns those.
-- Ignores jobs that do not hold their key. Never waits for a waiter: one that is being cancelled is skipped.
create or replace function laneway.free_keys(p_workspaces text[], p_keys text[], p_seqs bigint[])
returns table (seq bigint, job_type text)
language plpgsql volatile
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = on
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    v_spaces text[];
    v_keys   text[];
begin
    perform from (
        select h.* from unnest(p_workspaces, p_keys, p_seqs) as g (workspace, concurrency_key, seq)
         cross join lateral (select k.workspace, k.concurrency_key from laneway.key_holders k
                              where k.workspace = g.workspace and k.concurrency_key = g.concurrency_key
                                and k.seq = g.seq offset 0) h
         order by h.workspace, h.concurrency_key) x
     cross join lateral (select from laneway.key_holders k
                          where k.workspace = x.workspace and k.concurrency_key = x.concurrency_key
                            for update) l;
    with mine as materialized (
        select k.tid from unnest(p_workspaces, p_keys, p_seqs) as g (workspace, concurrency_key, seq)
         cross join lateral (select h.ctid as tid from laneway.key_holders h
                              where h.workspace = g.workspace and h.concurrency_key = g.concurrency_key
                                and h.seq = g.seq offset 0) k
    ), freed as (
        delete from laneway.key_holders h where h.ctid = any (array(select m.tid from mine m))
        returning h.workspace, h.concurrency_key
    )
    select array_agg(f.workspace), array_agg(f.concurrency_key) into v_spaces, v_keys from freed f;
    if v_keys is not null then
        return query select b.seq, b.job_type from laneway.promote_key_waiters(v_spaces, v_keys, null) b;
    end if;
end $$;

-- Moves the first waiter of each job type for these keys back to ready, or of one type only.
create or replace function laneway.promote_key_waiters(p_workspaces text[], p_keys text[], p_type text)
returns table (seq bigint, job_type text)
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
    return query
    with recursive types as (
        select g.workspace, g.concurrency_key, t.job_type
          from unnest(p_workspaces, p_keys) as g (workspace, concurrency_key)
         cross join lateral (select w.job_type from laneway.key_waiters w
                              where w.workspace = g.workspace and w.concurrency_key = g.concurrency_key
                                and (p_type is null or w.job_type = p_type)
                              order by w.job_type, w.rank, w.seq limit 1) t
        union all
        select t.workspace, t.concurrency_key, n.job_type from types t
         cross join lateral (select w.job_type from laneway.key_waiters w
                              where w.workspace = t.workspace and w.concurrency_key = t.concurrency_key
                                and w.job_type > t.job_type and p_type is null
                              order by w.job_type, w.rank, w.seq limit 1) n
    ), heads as materialized (
        select n.tid from types t
         cross join lateral (select w.ctid as tid from laneway.key_waiters w
                              where w.workspace = t.workspace and w.concurrency_key = t.concurrency_key
                                and w.job_type = t.job_type
                              order by w.rank, w.seq limit 1 for update skip locked) n
    ), gone as (
        -- Not a row that changed after this statement began: its lock shows the new version, which is not deleted.
        delete from laneway.key_waiters w where w.ctid = any (array(select h.tid from heads h)) returning w.*
    ), back as (
        insert into laneway.ready (seq, job_type, fresh, rank, attempt, retries, sealed, ready_at)
        select g.seq, g.job_type, false, g.rank, g.attempt, g.retries, g.sealed, g.ready_at from gone g
    )
    select g.seq, g.job_type from gone g;
end $$;

-- Called when a job that returned to ready for its key is gone: unless a job runs with the key, the next of its
-- type returns instead.
create or replace function laneway.promote_next_for_key(p_workspace text, p_key text, p_type text) returns void
language plpgsql volatile as $$
begin
    if exists (select from laneway.key_holders h
                where h.workspace = p_workspace and h.concurrency_key = p_key) then return; end if;
    perform laneway.wake(array(
        select b.job_type from laneway.promote_key_waiters(array[p_workspace], array[p_key], p_type) b));
end $$;

-- Parks waiting jobs among the next of these types whose key another job holds, so that claims do not find them
-- one slot at a time. Returns how many. Hides no other job from claims meanwhile.
create or replace function laneway.park(p_types text[], p_limit integer) returns integer
language plpgsql volatile
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    v_n integer;
begin
    with met as materialized (
        select r.seq from unnest(p_types) as t (job_type) cross join (values (false), (true)) f (fresh)
         cross join lateral (select w.seq from laneway.ready w
                              where w.job_type = t.job_type and w.fresh = f.fresh
                              order by w.rank, w.seq limit p_limit) r
         where t.job_type not like E'\x01%'
    ), blocked as materialized (
        select m.seq, j.workspace, j.concurrency_key from met m
         cross join lateral (select b.workspace, b.concurrency_key from laneway.jobs b
                              where b.seq = m.seq and b.concurrency_key is not null offset 0) j
         cross join lateral (select from laneway.key_holders k
                              where k.workspace = j.workspace and k.concurrency_key = j.concurrency_key
                                and k.seq <> m.seq offset 0) k
    ), holders as materialized (
        select h.* from (select distinct b.workspace, b.concurrency_key from blocked b order by 1, 2) d
         cross join lateral (select k.workspace, k.concurrency_key, k.seq from laneway.key_holders k
                              where k.workspace = d.workspace and k.concurrency_key = d.concurrency_key
                                for update) h
    ), losers as materialized (
        select w.*, b.workspace, b.concurrency_key from blocked b
         cross join lateral (select r.ctid as tid, r.* from laneway.ready r where r.seq = b.seq
                             offset 0 for update skip locked) w
         -- is true: a hashed lookup; a join would compare every row with every other.
         where ((b.workspace, b.concurrency_key) in (select h.workspace, h.concurrency_key from holders h)) is true
           and b.seq not in (select h.seq from holders h)
    ), gone as (
        -- Not a row that changed while this statement waited: its lock shows the new version, which is not deleted.
        delete from laneway.ready w where w.ctid = any (array(select l.tid from losers l)) returning w.seq
    ), aside as (
        insert into laneway.key_waiters (seq, workspace, concurrency_key, rank, job_type, attempt, retries, sealed, ready_at)
        select l.seq, l.workspace, l.concurrency_key, l.rank, l.job_type, l.attempt, l.retries, l.sealed, l.ready_at
          from losers l where (l.seq in (select g.seq from gone g)) is true
    )
    select count(*) into v_n from gone;
    return v_n;
end $$;

-- Repairs the results of a rolled back action (the end of a hold skipped its job meanwhile): waiters of a key
-- without holder; and of manual changes: a key held by a job that does not run. Returns how many it repaired.
-- Reads a row per key, not per job.
create or replace function laneway.sweep_keys(p_limit integer default 200) returns integer
language plpgsql volatile
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    r record;
    v_n integer := 0;
begin
    for r in
        with recursive keys as (
            (select w.workspace, w.concurrency_key from laneway.key_waiters w
              order by w.workspace, w.concurrency_key limit 1)
            union all
            select n.* from keys k
             cross join lateral (select w.workspace, w.concurrency_key from laneway.key_waiters w
                                  where (w.workspace, w.concurrency_key) > (k.workspace, k.concurrency_key)
                                  order by w.workspace, w.concurrency_key limit 1) n)
        select k.workspace, k.concurrency_key from keys k
         where (select true from laneway.key_holders h
                 where h.workspace = k.workspace and h.concurrency_key = k.concurrency_key) is null
         limit p_limit
    loop
        -- Jobs of the key that are in ready take it first; one more there does no harm.
        perform laneway.wake(array(
            select b.job_type from laneway.promote_key_waiters(array[r.workspace], array[r.concurrency_key], null) b));
        v_n := v_n + 1;
    end loop;
    for r in
        -- Not `not exists`, which may become a join that reads everything if the statistics are wrong.
        select h.workspace, h.concurrency_key, h.seq from laneway.key_holders h
         where (select true from laneway.lease l where l.seq = h.seq) is null
           and (select true from laneway.self_finished f where f.seq = h.seq) is null
         order by 1, 2 limit p_limit for update skip locked
    loop
        -- Checked again with the lock: a claim may just have taken it.
        if not exists (select from laneway.lease l where l.seq = r.seq)
           and not exists (select from laneway.self_finished f where f.seq = r.seq) then
            perform laneway.wake(array(
                select f.job_type from laneway.free_keys(array[r.workspace], array[r.concurrency_key], array[r.seq]) f));
            v_n := v_n + 1;
        end if;
    end loop;
    return v_n;
end $$;

-- Notifies workers, when this transaction commits, that jobs of these types can be claimed. For rare events; a
-- worker sends its own frequent ones coalesced.
create or replace function laneway.wake(p_types text[]) returns void language plpgsql volatile as $$
declare
    v_message text := 'wake ' || array_to_string(array(select distinct t from unnest(p_types) t), E'\x1f');
begin
    if cardinality(p_types) > 0 then
        perform pg_notify('laneway', case when octet_length(v_message) <= 7900 then v_message else 'wake *' end);
    end if;
end $$;
