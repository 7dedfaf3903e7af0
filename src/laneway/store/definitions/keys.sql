-- A key is held by the job that runs with it. Who meets a key that another holds is put aside in
-- key_waiters, in the same transaction in which it has the holder's row locked: whoever ends the hold
-- waits for that row first and so sees all who wait. Then the first of each job type that waits goes
-- back to ready, and whichever is claimed first takes the key: none can keep it from the others by
-- not being able to run. Only claims and the ends of attempts lock holders, never a caller's transaction.

-- Takes the key of each of these claimed jobs, the first in order of each key, or puts the job aside;
-- aside too, with nobody's hold, where an earlier one of its type is there to take it.
-- Answers those put aside.
create or replace function laneway.take_keys(p_met laneway.key_waiters[]) returns bigint[]
language plpgsql volatile
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    v_won   bigint[];
    v_early bigint[];
    v_lost  bigint[];
begin
    with won as (
        insert into laneway.key_holders as h (workspace, concurrency_key, seq)
        select distinct on (m.workspace, m.concurrency_key) m.workspace, m.concurrency_key, m.seq
          from unnest(p_met) m
         order by m.workspace, m.concurrency_key, m.rank, m.seq
        -- Changes nothing where another holds the key, and locks its row.
        on conflict (workspace, concurrency_key) do update set seq = h.seq where false
        returning h.seq)
    select array_agg(w.seq) into v_won from won w;
    -- Seen with the key locked, so after whoever freed it: one of the same type that was submitted before may
    -- wait for it, or may have come back since this claim looked, and goes first. Those that come back are few.
    select array_agg(m.seq) into v_early
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
    if v_early is not null then
        delete from laneway.key_holders h
         using unnest(p_met) m
         where m.seq = any (v_early)
           and h.workspace = m.workspace and h.concurrency_key = m.concurrency_key;
        v_won := array(select w from unnest(v_won) w where w <> all (v_early));
    end if;
    with aside as (
        insert into laneway.key_waiters
        select m.* from unnest(p_met) m where m.seq <> all (coalesce(v_won, '{}')) returning seq)
    select array_agg(a.seq) into v_lost from aside a;
    return coalesce(v_lost, '{}');
end $$;

-- Ends the hold of these jobs on their keys, and brings back the first of each type that waits; answers
-- those. Of jobs that do not hold theirs nothing happens. Never waits for one who waits: who is just
-- being cancelled is passed over.
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
        return query select b.seq, b.job_type from laneway.bring_back(v_spaces, v_keys, null) b;
    end if;
end $$;

-- Brings the first of each job type that waits for these keys back to ready, or of one type only.
create or replace function laneway.bring_back(p_workspaces text[], p_keys text[], p_type text)
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
        select n.* from types t
         cross join lateral (select w.ctid as tid, w.* from laneway.key_waiters w
                              where w.workspace = t.workspace and w.concurrency_key = t.concurrency_key
                                and w.job_type = t.job_type
                              order by w.rank, w.seq limit 1 for update skip locked) n
    ), gone as (
        delete from laneway.key_waiters w where w.ctid = any (array(select h.tid from heads h))
    ), back as (
        insert into laneway.ready (seq, job_type, fresh, rank, attempt, retries, sealed, ready_at)
        select h.seq, h.job_type, false, h.rank, h.attempt, h.retries, h.sealed, h.ready_at from heads h
    )
    select h.seq, h.job_type from heads h;
end $$;

-- A job that was back in ready for its key is gone: unless somebody runs with the key, the next of its
-- type comes instead.
create or replace function laneway.step_in(p_workspace text, p_key text, p_type text) returns void
language plpgsql volatile as $$
begin
    if exists (select from laneway.key_holders h
                where h.workspace = p_workspace and h.concurrency_key = p_key) then return; end if;
    perform laneway.wake(array(
        select b.job_type from laneway.bring_back(array[p_workspace], array[p_key], p_type) b));
end $$;

-- Puts aside jobs among the next of these types whose key another job holds, so that claims need not
-- meet them one slot at a time. Answers how many. Hides no other job from claims while it looks.
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
         -- is true: a hashed look-up, where a join would compare every row with every other.
         where ((b.workspace, b.concurrency_key) in (select h.workspace, h.concurrency_key from holders h)) is true
           and b.seq not in (select h.seq from holders h)
    ), gone as (
        delete from laneway.ready w where w.ctid = any (array(select l.tid from losers l))
    ), aside as (
        insert into laneway.key_waiters (seq, workspace, concurrency_key, rank, job_type, attempt, retries, sealed, ready_at)
        select l.seq, l.workspace, l.concurrency_key, l.rank, l.job_type, l.attempt, l.retries, l.sealed, l.ready_at
          from losers l
    )
    select count(*) into v_n from losers;
    return v_n;
end $$;

-- Mends what a verb that was rolled back can leave (whoever ended a hold meanwhile passed its job over):
-- somebody waits for a key that nobody holds; and what only a hand can leave: a key is held by a job
-- that does not run. Answers how many were mended. Reads a row per key, not per job.
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
        -- Those of its jobs that are in ready will take the key first; one more there does no harm.
        perform laneway.wake(array(
            select b.job_type from laneway.bring_back(array[r.workspace], array[r.concurrency_key], null) b));
        v_n := v_n + 1;
    end loop;
    for r in
        -- Not exists: that may become a join, which reads everything where the statistics are wrong.
        select h.workspace, h.concurrency_key, h.seq from laneway.key_holders h
         where (select true from laneway.lease l where l.seq = h.seq) is null
           and (select true from laneway.self_finished f where f.seq = h.seq) is null
         order by 1, 2 limit p_limit for update skip locked
    loop
        -- Looked at again behind the lock: a claim may have just taken it.
        if not exists (select from laneway.lease l where l.seq = r.seq)
           and not exists (select from laneway.self_finished f where f.seq = r.seq) then
            perform laneway.wake(array(
                select f.job_type from laneway.free_keys(array[r.workspace], array[r.concurrency_key], array[r.seq]) f));
            v_n := v_n + 1;
        end if;
    end loop;
    return v_n;
end $$;

-- Tells workers that jobs of these types can be claimed, when this transaction commits. For what is
-- freed now and then; what a worker frees again and again it tells itself, coalesced.
create or replace function laneway.wake(p_types text[]) returns void language plpgsql volatile as $$
declare
    v_message text := 'wake ' || array_to_string(array(select distinct t from unnest(p_types) t), E'\x1f');
begin
    if cardinality(p_types) > 0 then
        perform pg_notify('laneway', case when octet_length(v_message) <= 7900 then v_message else 'wake *' end);
    end if;
end $$;
