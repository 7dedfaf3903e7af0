-- Cancels and retries of whole flows, in bounded steps.

-- A waiting owner of sub-jobs and all jobs of its flow that could start because it ends, newest first, at most p_limit + 1.
-- Empty if it does not wait for this sub-job.
create or replace function laneway.started_by_end(p_seq bigint, p_flow bigint, p_limit integer) returns bigint[]
language plpgsql stable
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
    return (
        with recursive found as (
            select w.seq from laneway.links l
             cross join lateral (select x.seq from laneway.waiting x where x.seq = l.owner offset 0) w
             where l.seq = p_seq and (select true from laneway.open_edges e where e.parent = p_seq and e.child = w.seq)
            union
            select w.seq from found f
             cross join lateral (select x.child from laneway.open_edges x where x.parent = f.seq and x.rule = 'run' offset 0) e
             -- Ended ones keep their edges.
             cross join lateral (select x.seq from laneway.waiting x where x.seq = e.child offset 0) w
        )
        select array_agg(y.seq order by y.seq desc)
          from (select f.seq from found f
                 cross join lateral (select l.flow from laneway.links l where l.seq = f.seq offset 0) l
                 where l.flow = p_flow limit p_limit + 1) y);
end $$;

-- Cancels the jobs of a flow, at most p_limit before p_before, newest first, so that no job starts because one that it
-- comes after was cancelled. A sub-job is newer than its owner, which is cancelled before it. Waits for no lock: `skipped`
-- are the jobs that another transaction has locked, those whose end would start one of them, and sub-jobs that must wait until
-- many others are cancelled. They are given as p_seqs in a later call, and as p_skipped in all. `before`: where to continue,
-- null at the end; `workers` of jobs that were asked to stop; null `cancelled`: an unknown flow.
create or replace function laneway.cancel_flow(
    p_id uuid, p_by text, p_reason text, p_limit integer default 500, p_before bigint default null,
    p_seqs bigint[] default null, p_skipped bigint[] default null,
    out cancelled integer, out requested integer, out busy integer, out before bigint, out workers uuid[],
    out skipped bigint[])
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_flow bigint := laneway.flow_in_reach(p_id);
    v_seqs bigint[] := array(
        select l.seq from laneway.links l
         where l.flow = v_flow and l.seq < coalesce(p_before, 9223372036854775807) and p_seqs is null
         order by l.seq desc limit p_limit);
    v_seq  bigint;
    -- The job, and before it those that its end would start.
    v_todo bigint[];
    v_at   bigint;
    v_one  record;
begin
    if v_flow is null then return; end if;
    cancelled := 0;
    requested := 0;
    skipped := '{}';
    if p_seqs is not null then
        v_seqs := array(select l.seq from laneway.links l where l.seq = any (p_seqs) and l.flow = v_flow order by l.seq desc);
    end if;
    foreach v_seq in array v_seqs loop
        continue when exists (select from laneway.outcome o where o.seq = v_seq);
        -- laneway.cancel would wait for each. The edges first: the index would sort the array for each job.
        if laneway.is_locked(v_seq) or ((p_skipped is not null or skipped <> '{}') and exists (
            select from (select x.child from laneway.open_edges x where x.parent = v_seq and x.rule = 'run' offset 0) e
             where e.child = any (skipped || p_skipped))) then
            skipped := skipped || v_seq;
            continue;
        end if;
        v_todo := null;
        if exists (select from laneway.links l where l.seq = v_seq and l.owner is not null) then
            v_todo := laneway.started_by_end(v_seq, v_flow, p_limit);
        end if;
        if cardinality(v_todo) > p_limit or cancelled + requested + cardinality(v_todo) > 2 * p_limit
           or (select bool_or(laneway.is_locked(s)) from unnest(v_todo) s) then
            skipped := skipped || v_seq;
            continue;
        end if;
        foreach v_at in array v_todo || v_seq loop
            v_one := laneway.cancel(v_at, p_by, p_reason);
            if v_one.found_in = 'busy' then
                skipped := skipped || v_seq;
                exit;
            elsif v_one.worker_id is not null then
                requested := requested + 1;
                workers := workers || v_one.worker_id;
            elsif v_one.found_in not in ('completed', 'failed', 'cancelled') then
                cancelled := cancelled + 1;
            end if;
        end loop;
    end loop;
    busy := cardinality(skipped);
    if p_seqs is null and cardinality(v_seqs) = p_limit then before := v_seqs[p_limit]; end if;
    workers := array(select distinct w from unnest(workers) w);
end $$;

-- Whether a job is a sub-job whose handler has met its end and goes on, or has completed with it: when it runs again, it must
-- meet the same end. Not while the handler still waits for others of the same call: then it waits for a retried one again.
create or replace function laneway.is_remembered(p_seq bigint) returns boolean language sql stable as $$
    select exists (select from laneway.links l where l.seq = p_seq and l.owner is not null
                      and (select o.status = 'completed' from laneway.outcome o where o.seq = l.owner) is not false
                      and (select true from laneway.jobs j where j.seq = l.owner)
                      and (select true from laneway.waiting w
                            where w.seq = l.owner and w.reason = 'sub_jobs' and w.name = l.owner_wait) is null)
$$;

-- Whether a retry of its flow leaves a failed or cancelled job as it is: its handler remembers its end, or a parent in the
-- flow has failed or was cancelled too, so that the job would wait until another retry. Parents are retried first. Call it
-- right before the retry of the job: parents that run may end until then.
create or replace function laneway.is_left_alone(p_seq bigint, p_flow bigint) returns boolean
language plpgsql stable
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
    return laneway.is_remembered(p_seq)
        or exists (select from laneway.open_edges e
                    where e.child = p_seq and e.rule = 'cancel'
                      and (select o.status <> 'completed' from laneway.outcome o where o.seq = e.parent)
                      and (select j.flow from laneway.jobs j where j.seq = e.parent) = p_flow);
end $$;

-- Retries the failed and cancelled jobs of a flow, at most p_limit after p_after, in the order of their submit, so that
-- each waits for its parents again; but no sub-jobs of a handler that goes on or has completed and none that were cancelled
-- because of one that is not retried (is_left_alone), and no jobs whose unique_key another live job holds. `after`: where to
-- continue, null at the end; `wakes`: job types to wake; null `retried`: an unknown flow. `is_busy`: it stopped before a
-- job that another transaction has locked, because those after it would not wait for it: continue a little later.
create or replace function laneway.retry_flow(
    p_id uuid, p_limit integer default 500, p_after bigint default 0,
    out retried integer, out after bigint, out wakes text[], out is_busy boolean)
language plpgsql volatile
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set lock_timeout = '1s'
as $$
declare
    v_flow bigint := laneway.flow_in_reach(p_id);
    v_seqs bigint[] := array(
        select l.seq from laneway.links l where l.flow = v_flow and l.seq > p_after order by l.seq limit p_limit);
    v_seq  bigint;
    v_one  record;
begin
    if v_flow is null then return; end if;
    retried := 0;
    is_busy := false;
    after := p_after;
    foreach v_seq in array v_seqs loop
        if exists (select from laneway.outcome o where o.seq = v_seq and o.status <> 'completed')
           and not laneway.is_left_alone(v_seq, v_flow) then
            perform from laneway.outcome o where o.seq = v_seq for update skip locked;
            if not found then is_busy := true; return; end if;
            -- Again: a parent may have failed before the lock. If one fails after it, follow_edges waits for the lock.
            if not laneway.is_left_alone(v_seq, v_flow) then
                begin
                    v_one := laneway.retry(v_seq, 0);
                exception when lock_not_available or deadlock_detected then
                    is_busy := true;
                    return;
                end;
                if v_one.found_in in ('failed', 'cancelled') then
                    retried := retried + 1;
                    -- Null: the job waits.
                    if v_one.wakes is not null and v_one.wakes <> all (coalesce(wakes, '{}')) then
                        wakes := wakes || v_one.wakes;
                    end if;
                end if;
            end if;
        end if;
        after := v_seq;
    end loop;
    if cardinality(v_seqs) < p_limit then after := null; end if;
end $$;
