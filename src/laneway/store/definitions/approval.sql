-- A fingerprint of what will run and of its analysis.
create or replace function laneway.seal(p_payload jsonb, p_analysis jsonb) returns text
language sql immutable as $$
    select encode(sha256(convert_to(p_payload::text || E'\x1f' || coalesce(p_analysis::text, ''), 'UTF8')), 'hex')
$$;

-- approvals holds the current decision; a retry may need another one, so decisions keeps each.
create or replace function laneway.save_decision(p_seq bigint) returns void language sql volatile as $$
    insert into laneway.decisions (seq, decision, decided_at, decided_by, comment, seal)
    select a.seq, a.decision, a.decided_at, a.decided_by, a.comment, a.seal from laneway.approvals a where a.seq = p_seq
$$;

-- Places a new job that needs an analysis or an approval; returns its status. Stores the requirements of the
-- submitter's handler, so that a worker of an older release cannot skip them by publishing less.
create or replace function laneway.start_approval(p_seq bigint, p_now timestamptz, p_needs text) returns text
language plpgsql volatile as $$
declare
    v record;
begin
    select j.job_type, j.priority, coalesce(t.has_analysis, false) as has_analysis into v
      from laneway.jobs j left join laneway.job_types t on t.name = j.job_type where j.seq = p_seq;
    if p_needs is not null then
        insert into laneway.approvals (seq, asked) values (p_seq, p_needs);
    end if;
    if v.has_analysis or p_needs in ('analysis', 'both') then
        insert into laneway.ready (seq, job_type, rank, ready_at)
        values (p_seq, laneway.analysis_of(v.job_type), -v.priority, p_now);
        return 'pending';
    end if;
    return laneway.request_approval(p_seq, -v.priority, 0, p_now);
end $$;

-- Makes a job wait for an approval, until the expiry of its type.
create or replace function laneway.request_approval(p_seq bigint, p_rank integer, p_attempt integer, p_now timestamptz)
returns text language plpgsql volatile as $$
begin
    insert into laneway.awaiting (seq, job_type, workspace, rank, attempt, since, expires_at)
    select j.seq, j.job_type, j.workspace, p_rank, p_attempt, p_now,
           p_now + make_interval(secs => coalesce(t.approval_expires_s, 86400))
      from laneway.jobs j left join laneway.job_types t on t.name = j.job_type where j.seq = p_seq;
    return 'awaiting_approval';
end $$;

-- Makes a job claimable: at once, or at its run_at.
create or replace function laneway.make_claimable(
    p_seq bigint, p_job_type text, p_rank integer, p_attempt integer, p_sealed boolean, p_now timestamptz)
returns void language plpgsql volatile as $$
declare
    v_run_at timestamptz := (select j.run_at from laneway.jobs j where j.seq = p_seq);
    -- A job that ran before its type required approval keeps its spent retries.
    v_retries integer := coalesce((select a.sent_back from laneway.approvals a where a.seq = p_seq), 0);
begin
    if v_run_at > p_now then
        insert into laneway.delayed (seq, job_type, rank, attempt, retries, sealed, run_at)
        values (p_seq, p_job_type, p_rank, p_attempt, v_retries, p_sealed, v_run_at);
    else
        insert into laneway.ready (seq, job_type, fresh, rank, attempt, retries, sealed, ready_at)
        values (p_seq, p_job_type, false, p_rank, p_attempt, v_retries, p_sealed, p_now);
    end if;
end $$;

-- Jobs that lack what their type requires now: a decision, or else an analysis.
create or replace function laneway.lacking_approval(p_met laneway.key_waiters[]) returns bigint[]
language sql stable as $$
    select array_agg(m.seq)
      from unnest(p_met) m join laneway.job_types t on t.name = m.job_type
     where not m.sealed
       and (t.approval <> 'never' or (t.has_analysis and not exists (
            select from laneway.approvals a where a.seq = m.seq and a.analysis is not null)))
$$;

-- Sends jobs found by a claim back to their analysis or approval: they were approved before their type
-- required more.
create or replace function laneway.return_to_approval(p_met laneway.key_waiters[], p_now timestamptz)
returns void language plpgsql volatile as $$
declare
    r record;
    v_wakes text[] := '{}';
begin
    for r in
        select m.*, (t.has_analysis or a.asked in ('analysis', 'both')) and a.analysis is null as lacks_analysis
          from unnest(p_met) m
          join laneway.job_types t on t.name = m.job_type
          left join laneway.approvals a on a.seq = m.seq
         order by m.seq
    loop
        insert into laneway.approvals as a (seq, sent_back) values (r.seq, r.retries)
        on conflict (seq) do update set sent_back = excluded.sent_back;
        if r.lacks_analysis then
            insert into laneway.ready (seq, job_type, fresh, rank, attempt, ready_at)
            values (r.seq, laneway.analysis_of(r.job_type), false, r.rank, r.attempt, p_now);
            v_wakes := v_wakes || laneway.analysis_of(r.job_type);
        else
            perform laneway.apply_approval_policy(r.seq, r.rank, r.attempt, p_now);
        end if;
        if r.concurrency_key is not null then
            perform laneway.promote_next_for_key(r.workspace, r.concurrency_key, r.job_type);
        end if;
    end loop;
    perform laneway.wake(v_wakes);
    perform laneway.emit(array(select m.seq from unnest(p_met) m), 'returned');
end $$;

-- Decides what follows an analysis or a retry by the policy of the job's type: approved if the policy is
-- never or the cost is at most its threshold, else awaiting_approval. The same rule as
-- laneway.domain.approval.status_after_analysis.
create or replace function laneway.apply_approval_policy(
    p_seq bigint, p_rank integer, p_attempt integer, p_now timestamptz)
returns text language plpgsql volatile as $$
declare
    v_job laneway.jobs;
    v_type laneway.job_types;
    v_approval laneway.approvals;
begin
    select * into v_job from laneway.jobs j where j.seq = p_seq;
    select * into v_type from laneway.job_types t where t.name = v_job.job_type;
    select * into v_approval from laneway.approvals a where a.seq = p_seq;
    if coalesce(v_type.approval, 'never') = 'never' and (v_approval.asked in ('approval', 'both')) is not true then
        perform laneway.make_claimable(p_seq, v_job.job_type, p_rank, p_attempt, false, p_now);
        return 'approved';
    elsif v_type.approval = 'below' and v_approval.cost <= v_type.approval_below
          and v_approval.unit = v_type.approval_unit then
        update laneway.approvals a
           set decision = 'automatic', decided_at = p_now, decided_by = 'policy',
               comment = format('at most %s %s', v_type.approval_below, v_type.approval_unit),
               seal = laneway.seal(v_job.payload, v_approval.analysis)
         where a.seq = p_seq;
        perform laneway.save_decision(p_seq);
        perform laneway.make_claimable(p_seq, v_job.job_type, p_rank, p_attempt, true, p_now);
        return 'approved';
    end if;
    return laneway.request_approval(p_seq, p_rank, p_attempt, p_now);
end $$;

-- Places a job that an operator retries: claimable, at its run_at, if it was approved unchanged or needs no approval; pending
-- if it lacks an analysis of its current payload; else awaiting_approval. Returns the type to wake, null before its run_at.
create or replace function laneway.requeue_retried(p_seq bigint, p_rank integer, p_attempt integer, p_now timestamptz)
returns text language plpgsql volatile as $$
declare
    v_job laneway.jobs;
    v_type laneway.job_types;
    v_approval laneway.approvals;
    v_agreed boolean;
    v_sealed boolean;
begin
    select * into v_job from laneway.jobs j where j.seq = p_seq;
    select * into v_type from laneway.job_types t where t.name = v_job.job_type;
    select * into v_approval from laneway.approvals a where a.seq = p_seq;
    update laneway.approvals a set sent_back = null where a.seq = p_seq and a.sent_back is not null;
    v_agreed := coalesce(v_approval.decision in ('approved', 'automatic'), false);
    v_sealed := v_agreed and v_approval.seal = laneway.seal(v_job.payload, v_approval.analysis);
    if (v_type.has_analysis or v_approval.asked in ('analysis', 'both')) and not v_sealed
       and (v_approval.analysis is null or v_agreed) then
        insert into laneway.ready (seq, job_type, fresh, rank, attempt, ready_at)
        values (p_seq, laneway.analysis_of(v_job.job_type), false, p_rank, p_attempt, p_now);
        return laneway.analysis_of(v_job.job_type);
    elsif v_sealed or (coalesce(v_type.approval, 'never') = 'never'
                       and (v_approval.asked in ('approval', 'both')) is not true) then
        perform laneway.make_claimable(p_seq, v_job.job_type, p_rank, p_attempt, v_sealed, p_now);
        return case when (v_job.run_at > p_now) is not true then v_job.job_type end;
    end if;
    update laneway.approvals a set seal = null, decision = null, decided_at = null, decided_by = null, comment = null
     where a.seq = p_seq;
    perform laneway.apply_approval_policy(p_seq, p_rank, p_attempt, p_now);
    return v_job.job_type;
end $$;

-- Stores the result of an analysis. Deletes its progress and steps: the run starts without them. A job that
-- ran before its type required approval keeps the progress and steps of its runs.
create or replace function laneway.save_analysis(p_seq bigint, p_analysis jsonb, p_now timestamptz)
returns void language plpgsql volatile as $$
declare
    v_cost jsonb := p_analysis -> 'cost';
    v_amount jsonb := coalesce(v_cost -> 'amount', v_cost -> 'tokens');
    v_is_cost boolean := coalesce(jsonb_typeof(v_amount) = 'number', false);
    v_has_run boolean;
begin
    insert into laneway.approvals as a (seq, analysis, cost, unit, analyzed_at)
    values (p_seq, p_analysis, case when v_is_cost then v_amount::text::numeric end,
            case when v_is_cost and v_cost ? 'amount' then v_cost ->> 'currency' when v_is_cost then 'tokens' end, p_now)
    on conflict (seq) do update
       set analysis = excluded.analysis, cost = excluded.cost, unit = excluded.unit, analyzed_at = excluded.analyzed_at,
           seal = null, decision = null, decided_at = null, decided_by = null, comment = null;
    v_has_run := exists (select from laneway.approvals a where a.seq = p_seq and a.sent_back is not null)
             and exists (select from laneway.attempts t where t.seq = p_seq and t.lane <> 'analysis');
    delete from laneway.progress p where p.seq = p_seq and not v_has_run;
    delete from laneway.steps s
     where s.seq = p_seq and (not v_has_run or exists (
           select from laneway.attempts t
            where t.seq = p_seq and t.attempt = s.attempt and t.lane = 'analysis'));
end $$;

-- The writers of a schedule at a time: every actor that ever set a part of its jobs to the value it had then, and the
-- last actor that changed any other column. Null: the writer of the payload or of the job type is unknown.
create or replace function laneway.schedule_writers(p_schedule text, p_at timestamptz) returns text[]
language sql stable as $$
    with past as materialized (
        select h.id, h.by, h.before, h.after from laneway.control_history h
         where h.kind = 'schedule' and h.name = p_schedule and h.at <= p_at
    ), written as materialized (
        select f.key, p.by,
               p.id = max(p.id) over (partition by f.key) as is_last,
               f.key in ('job_type', 'payload', 'priority', 'max_retries', 'concurrency_key', 'workspace', 'tags')
               and p.after -> f.key = f.value as is_same
          from (select l.after from past l order by l.id desc limit 1) n
         cross join jsonb_each(n.after) f
          join past p on p.after -> f.key is distinct from p.before -> f.key
         where f.key not in ('name', 'error', 'created_at')
    )
    select case when count(distinct w.key) filter (where w.key in ('job_type', 'payload') and w.is_same) = 2
                then array_agg(distinct w.by) filter (where w.is_same or w.is_last) end
      from written w
$$;

-- Stores the writers of the schedule of a new job; they outlive the schedule, its slots and its history.
create or replace function laneway.save_schedule_writers(p_job uuid, p_schedule text) returns void
language sql volatile as $$
    insert into laneway.schedule_jobs (seq, schedule, writers)
    select j.seq, p_schedule, laneway.schedule_writers(p_schedule, j.created_at) from laneway.jobs j where j.id = p_job
$$;

-- Whether a job belongs to this person, or may belong to it. The submitter owns it. If a schedule submitted the job,
-- also by a manual run, all writers of the schedule at that time own it too, and the last actor that changed it since.
-- If the writers are unknown, it may belong to any person.
create or replace function laneway.is_own_job(p_job laneway.jobs, p_by text) returns boolean
language plpgsql stable as $$
declare
    v_kept    laneway.schedule_jobs;
    v_writers text[];
begin
    if p_job.created_by is null or p_job.created_by = p_by then return true; end if;
    select * into v_kept from laneway.schedule_jobs s where s.seq = p_job.seq;
    v_writers := v_kept.writers;
    -- For jobs from before writers were stored: the history may still have them.
    if v_kept.schedule is null and p_job.created_by like 'schedule:%' then
        v_kept.schedule := substr(p_job.created_by, 10);
    end if;
    if v_kept.schedule is null then return false; end if;
    if v_writers is null then
        v_writers := laneway.schedule_writers(v_kept.schedule, p_job.created_at);
    end if;
    return v_writers is null or p_by = any (v_writers)
        or exists (select from laneway.schedules s where s.name = v_kept.schedule and s.updated_by = p_by);
end $$;

-- Approves or rejects one job that awaits it. `found_in` is the state that was found; refusal tells why an
-- awaiting job was not changed: two_person, or changed (since the approver saw it). A late approval expires
-- the job instead. With its owner's rights: a role that may decide cannot write a decision or a queue row
-- directly.
create or replace function laneway.decide(
    p_seq bigint, p_approve boolean, p_by text, p_comment text, p_seal text,
    out found_in text, out refusal text, out job_type text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_now timestamptz := clock_timestamp();
    v_row laneway.awaiting;
    v_job laneway.jobs;
    v_analysis jsonb;
begin
    if p_by is null then
        raise exception using errcode = 'LW001', message = 'by: must be given, because a decision is stored with its author';
    end if;
    if p_by ~ '^\s|\s$' then
        raise exception using errcode = 'LW001', message = 'by: must not begin or end with a blank';
    end if;
    if not p_approve and coalesce(p_comment, '') = '' then
        raise exception using errcode = 'LW001', message = 'reason: must be given to reject';
    end if;
    -- Lock first, so that the second of two deciders sees the result of the first.
    select * into v_row from laneway.awaiting w where w.seq = p_seq for update;
    if not found then
        select v.status into found_in from laneway.jobs_view v where v.seq = p_seq;
        return;
    end if;
    found_in := 'awaiting_approval';
    select * into v_job from laneway.jobs j where j.seq = p_seq;
    job_type := v_job.job_type;
    if p_approve and v_row.expires_at <= v_now then
        perform laneway.close_awaiting(p_seq, 'expired', 'laneway', null, v_now);
        found_in := 'cancelled';
        return;
    end if;
    select a.analysis into v_analysis from laneway.approvals a where a.seq = p_seq;
    if p_seal is not null and p_seal <> laneway.seal(v_job.payload, v_analysis) then
        refusal := 'changed'; return;
    end if;
    if p_approve and (select t.two_person from laneway.job_types t where t.name = v_job.job_type)
       and laneway.is_own_job(v_job, p_by) then
        refusal := 'two_person'; return;
    end if;
    perform laneway.close_awaiting(p_seq, case when p_approve then 'approved' else 'rejected' end, p_by, p_comment, v_now);
end $$;

-- Ends the wait for an approval: an approved job continues, any other decision cancels it.
create or replace function laneway.close_awaiting(
    p_seq bigint, p_decision text, p_by text, p_comment text, p_now timestamptz)
returns void language plpgsql volatile as $$
declare
    v_row laneway.awaiting;
    v_job laneway.jobs;
begin
    delete from laneway.awaiting w where w.seq = p_seq returning * into v_row;
    if not found then return; end if;
    select * into v_job from laneway.jobs j where j.seq = p_seq;
    insert into laneway.approvals as a (seq, seal, decision, decided_at, decided_by, comment)
    values (p_seq, laneway.seal(v_job.payload, null), p_decision, p_now, p_by, p_comment)
    on conflict (seq) do update
       set seal = laneway.seal(v_job.payload, a.analysis), decision = excluded.decision,
           decided_at = excluded.decided_at, decided_by = excluded.decided_by, comment = excluded.comment;
    perform laneway.save_decision(p_seq);
    if p_decision = 'approved' then
        perform laneway.make_claimable(p_seq, v_job.job_type, v_row.rank, v_row.attempt, true, p_now);
        perform laneway.emit(array[p_seq], 'approved');
        return;
    end if;
    perform laneway.end_waiting(
        p_seq, 'not_approved', v_row.rank, v_row.attempt, 0, p_now, p_by,
        case when p_decision = 'rejected' then concat('rejected: ', p_comment) else 'approval expired' end, null);
end $$;

-- Cancels jobs whose approval expired. Returns how many.
create or replace function laneway.expire_approvals(p_limit integer default 200, p_now timestamptz default null)
returns integer language plpgsql volatile as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_seq bigint;
    v_n integer := 0;
begin
    for v_seq in select w.seq from laneway.awaiting w where w.expires_at <= v_now
                  order by w.expires_at limit p_limit for update skip locked loop
        perform laneway.close_awaiting(v_seq, 'expired', 'laneway', null, v_now);
        v_n := v_n + 1;
    end loop;
    return v_n;
end $$;
