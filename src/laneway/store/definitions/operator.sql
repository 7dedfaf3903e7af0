-- Each follows the job through the tables, one statement and so one snapshot each, because a claim
-- may move it in between; `found_in` is the state the verb met, null when there is no such job.

-- Not yet running: cancelled at once. Running: asks its worker to stop. Terminal: nothing.
create or replace function laneway.cancel(p_seq bigint, p_by text, p_reason text, out found_in text, out worker_id uuid)
language plpgsql volatile as $$
declare
    v_now timestamptz := clock_timestamp();
    v_job record;
begin
    for i in 1 .. 100 loop
        with gone as (
            delete from laneway.ready w where w.seq = p_seq returning w.seq, w.rank, w.attempt, w.retries
        ), gone_later as (
            delete from laneway.delayed d where d.seq = p_seq returning d.seq, d.rank, d.attempt, d.retries
        )
        insert into laneway.outcome (seq, status, workspace, job_type, priority, attempt, retries, finished_at,
                                     cancel_requested_at, cancel_by, cancel_reason)
        select g.seq, 'cancelled', j.workspace, j.job_type, -g.rank, g.attempt, g.retries, v_now, v_now, p_by, p_reason
          from (select * from gone union all select * from gone_later) g, laneway.jobs j where j.seq = p_seq;
        if found then
            select j.workspace, j.job_type, j.unique_key into v_job from laneway.jobs j where j.seq = p_seq;
            delete from laneway.job_keys k
             where k.workspace = v_job.workspace and k.job_type = v_job.job_type
               and k.unique_key = v_job.unique_key and k.seq = p_seq;
            found_in := 'approved';
            return;
        end if;
        update laneway.lease l
           set cancel_requested_at = coalesce(l.cancel_requested_at, v_now),
               cancel_by = coalesce(l.cancel_by, p_by), cancel_reason = coalesce(l.cancel_reason, p_reason)
         where l.seq = p_seq returning l.worker_id into worker_id;
        if found then found_in := 'running'; return; end if;
        select o.status into found_in from laneway.outcome o where o.seq = p_seq;
        if found then return; end if;
        perform from laneway.jobs j where j.seq = p_seq;
        if not found then found_in := null; return; end if;
    end loop;
    raise exception 'job % moved on a hundred times while it was to be cancelled', p_seq;
end $$;

-- Queued: takes the new priority. Otherwise nothing.
create or replace function laneway.reprioritize(p_seq bigint, p_priority integer, out found_in text)
language plpgsql volatile as $$
begin
    if p_priority not between -32768 and 32767 then
        raise exception using errcode = 'LW001', message = 'priority: -32768 to 32767';
    end if;
    for i in 1 .. 100 loop
        update laneway.ready w set rank = -p_priority, fresh = false where w.seq = p_seq;
        if found then found_in := 'approved'; return; end if;
        update laneway.delayed d set rank = -p_priority where d.seq = p_seq;
        if found then found_in := 'approved'; return; end if;
        perform from laneway.lease l where l.seq = p_seq;
        if found then found_in := 'running'; return; end if;
        select o.status into found_in from laneway.outcome o where o.seq = p_seq;
        if found then return; end if;
        perform from laneway.jobs j where j.seq = p_seq;
        if not found then found_in := null; return; end if;
    end loop;
    raise exception 'job % moved on a hundred times while it was to be reprioritized', p_seq;
end $$;

-- Failed or cancelled: waits again, with a new retry budget and a growing attempt. `found_in` is
-- `duplicate` when another live job holds its unique_key.
create or replace function laneway.retry(p_seq bigint, out found_in text)
language plpgsql volatile as $$
declare
    v_old laneway.outcome;
    v_job laneway.jobs;
begin
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
    insert into laneway.ready (seq, job_type, fresh, rank, attempt, retries)
    values (p_seq, v_job.job_type, false, -v_old.priority, v_old.attempt, 0);
end $$;
