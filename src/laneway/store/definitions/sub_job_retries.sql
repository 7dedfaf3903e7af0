-- A retry of a job whose sub-jobs failed retries them too. They may be many, so that each statement takes a bounded number
-- of them, and laneway.advance does the rest. The job waits from the beginning to the end, also if a process dies meanwhile.

-- Retries the failed and cancelled sub-jobs of a wait, at most p_limit after p_beyond, in the order of their numbers.
-- `reopened`: those for which the owner must wait again, also such that were retried before. Waits for no lock: `beyond` lies
-- before the first job that another transaction has locked; null at the end. `wakes`: job types to wake.
create or replace function laneway.reopen_sub_jobs(
    p_owner bigint, p_wait text, p_beyond bigint, p_limit integer,
    out reopened bigint[], out beyond bigint, out wakes text[])
language plpgsql volatile
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_page   bigint[] := array(
        select l.seq from laneway.links l where l.owner = p_owner and l.owner_wait = p_wait and l.seq > p_beyond
         order by l.seq limit p_limit);
    v_seq    bigint;
    v_status text;
    v_locked bigint;
    v_live   bigint[] := '{}';
    v_one    record;
begin
    reopened := '{}';
    wakes := '{}';
    foreach v_seq in array v_page loop
        select o.status into v_status from laneway.outcome o where o.seq = v_seq;
        continue when v_status = 'completed';
        if v_status is null then
            if laneway.is_locked(v_seq) then
                v_locked := least(v_locked, v_seq);
            else
                v_live := v_live || v_seq;
            end if;
            continue;
        end if;
        perform from laneway.outcome o where o.seq = v_seq for update skip locked;
        if not found then
            v_locked := least(v_locked, v_seq);
            continue;
        end if;
        begin
            v_one := laneway.retry(v_seq, 0);
        exception when lock_not_available or deadlock_detected then
            -- This one has waited. Each of those after it could, too.
            v_locked := least(v_locked, v_seq);
            exit;
        end;
        if v_one.found_in in ('failed', 'cancelled') then
            reopened := reopened || v_seq;
            if v_one.wakes <> all (wakes) then wakes := wakes || v_one.wakes; end if;
        end if;
    end loop;
    if v_live <> '{}' then
        reopened := reopened || array(select p.seq from laneway.lock_parents(v_live) p where p.status is null);
    end if;
    beyond := case when v_locked is not null then v_locked - 1
                   when p_limit = 0 then p_beyond
                   when cardinality(v_page) = p_limit then v_page[p_limit] end;
end $$;

-- The next step of a retry of many sub-jobs, for laneway.advance: at most p_limit after p_beyond. Their owner, which has one
-- more in its countdown until the last step, waits for each. Leaves them alone if the owner was cancelled since. Returns
-- where to continue, null at the end. An end of a sub-job that is not committed has the countdown locked: then it does nothing.
create or replace function laneway.retry_sub_jobs(
    p_owner bigint, p_wait text, p_beyond bigint, p_limit integer,
    out beyond bigint, out done integer, out wakes text[], out arrived boolean)
language plpgsql volatile
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set lock_timeout = '200ms'
as $$
declare
    v_step    record;
    v_count   integer;
    v_is_free boolean;
begin
    done := 0;
    arrived := false;
    -- Against a cancel of the owner meanwhile.
    perform from laneway.waiting w
      where w.seq = p_owner and w.reason = 'sub_jobs' and w.name = p_wait for update skip locked;
    v_is_free := found;
    if v_is_free then
        perform from laneway.countdowns c where c.seq = p_owner for update skip locked;
        v_is_free := found or not exists (select from laneway.countdowns c where c.seq = p_owner);
    end if;
    if v_is_free then
        v_step := laneway.reopen_sub_jobs(p_owner, p_wait, p_beyond, p_limit);
        -- Retried ones have opened theirs.
        insert into laneway.open_edges (parent, child, rule)
        select s, p_owner, 'run' from unnest(v_step.reopened) s order by s on conflict do nothing;
        get diagnostics v_count = row_count;
        update laneway.countdowns c set missing = c.missing + v_count where c.seq = p_owner and v_count > 0;
        done := cardinality(v_step.reopened);
        wakes := v_step.wakes;
        beyond := v_step.beyond;
    elsif exists (select from laneway.waiting w where w.seq = p_owner and w.reason = 'sub_jobs' and w.name = p_wait) then
        beyond := p_beyond;
    end if;
    if beyond is null then
        select wakes || coalesce(array_agg(c.job_type) filter (where c.answer = 'promoted'), '{}'),
               bool_or(c.answer = 'arrived') is true
          into wakes, arrived
          from laneway.count_down(array[p_owner], array[1], clock_timestamp()) c;
    end if;
end $$;
