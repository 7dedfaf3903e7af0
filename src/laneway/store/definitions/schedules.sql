-- An enabled schedule has no error: enabling a stopped one clears it, also by SQL.
create or replace function laneway.clear_schedule_error() returns trigger language plpgsql as $$
begin
    new.error := null;
    return new;
end $$;
create or replace trigger clear_schedule_error before insert or update on laneway.schedules
    for each row when (new.enabled and new.error is not null) execute function laneway.clear_schedule_error();

-- Refuses a row that no submit accepts, also from SQL: the jobs of the schedule would fail. Laneway's statements have
-- checked the payload against their settings, and say so. With its owner's rights, for the functions that it calls.
create or replace function laneway.check_schedule() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_is_ours boolean := coalesce(current_setting('laneway.payload_checked', true), '') = 'on';
    v_problem text;
begin
    -- Existing values stay: only a change is checked.
    if tg_op = 'UPDATE' then
        v_is_ours := v_is_ours or (new.payload, new.concurrency_key) is not distinct from (old.payload, old.concurrency_key);
    end if;
    if not v_is_ours then
        v_problem := 'payload: ' || laneway.payload_problem(new.payload, 1048576);
        if octet_length(new.concurrency_key) not between 1 and 512 then
            v_problem := 'concurrency_key: 1 to 512 bytes';
        end if;
    end if;
    if octet_length(new.workspace) not between 1 and 128 then v_problem := 'workspace: 1 to 128 bytes'; end if;
    if cardinality(new.tags) > 64 then v_problem := 'tags: at most 64 tags'; end if;
    if exists (select from unnest(new.tags) t where t is null or octet_length(t) not between 1 and 128) then
        v_problem := 'tags: 1 to 128 bytes each';
    end if;
    if v_problem is not null then
        raise exception using errcode = 'LW001', message = v_problem;
    end if;
    return new;
end $$;
create or replace trigger check_schedule before insert or update of payload, workspace, concurrency_key, tags
    on laneway.schedules for each row execute function laneway.check_schedule();

-- Called when the timing of a schedule changed, also by SQL: the next scheduler pass plans it again. A running check
-- loses its lease, so that its result is ignored.
create or replace function laneway.replan_schedule() returns trigger language plpgsql as $$
begin
    if tg_op = 'INSERT' then
        insert into laneway.schedule_state (name) values (new.name) on conflict (name) do nothing;
    else
        update laneway.schedule_state t
           set next_at = case when (new.cron, new.timezone, new.enabled) = (old.cron, old.timezone, old.enabled)
                              then t.next_at end,
               check_failures = 0, checking_by = null, checking_until = null,
               asked_at = case when new.check_name = old.check_name then t.asked_at end
         where t.name = new.name;
    end if;
    return null;
end $$;
create or replace trigger replan_schedule after insert on laneway.schedules
    for each row execute function laneway.replan_schedule();
create or replace trigger replan_changed after update on laneway.schedules
    for each row when ((new.cron, new.timezone, new.enabled, new.check_name)
                       is distinct from (old.cron, old.timezone, old.enabled, old.check_name))
    execute function laneway.replan_schedule();

-- Notifies schedulers, which would otherwise notice within half a minute. A schedule does not affect claims, so a
-- change of one does not change the control version.
create or replace function laneway.notify_schedulers() returns trigger language plpgsql as $$
begin
    perform pg_notify('laneway', 'schedules');
    return null;
end $$;
create or replace trigger notify_schedulers after insert or update or delete on laneway.schedules
    for each statement execute function laneway.notify_schedulers();

-- Takes one slot and submits its job, in the transaction of the caller, which has locked the schedule's row. False:
-- the slot was already taken. A slot recorded as missed may still be taken: the clock was ahead then, and was set
-- back. A job that cannot be submitted fails only the slot. p_by: the caller that requested it, who owns the job;
-- null: the schedule itself.
create or replace function laneway.take_slot(p laneway.schedules, p_slot timestamptz, p_manual boolean,
                                             p_outcome text, p_note text, p_by text)
returns boolean language plpgsql volatile as $$
declare
    v_job uuid := case when p_outcome = 'submitted' then gen_random_uuid() end;
begin
    update laneway.schedule_slots t
       set outcome = p_outcome, job_id = v_job, at = clock_timestamp(),
           note = concat_ws('; ', p_note, 'before: ' || t.note)
     where t.schedule = p.name and t.slot = p_slot and t.outcome = 'missed' and p_outcome <> 'missed';
    if not found then
        insert into laneway.schedule_slots (schedule, slot, manual, outcome, job_id, note)
        values (p.name, p_slot, p_manual, p_outcome, v_job, p_note)
        on conflict (schedule, slot) do nothing;
    end if;
    if not found then return false; end if;
    if v_job is null then return true; end if;
    begin
        perform laneway.submit(
            job_type => p.job_type, payload => p.payload, priority => p.priority, workspace => p.workspace,
            tags => nullif(p.tags, '{}'), max_retries => p.max_retries,
            created_by => coalesce(p_by, 'schedule:' || p.name), concurrency_key => p.concurrency_key, id => v_job,
            unique_for => '0',  -- one job per slot, whatever the type says
            max_payload_bytes => 2147483647, max_key_bytes => 2147483647);
        perform laneway.save_schedule_writers(v_job, p.name);
    -- Other errors (the server, a lock, missing rights) roll the slot back, and it is tried again.
    exception when sqlstate 'LW001' or data_exception or integrity_constraint_violation
                   or raise_exception or program_limit_exceeded then
        update laneway.schedule_slots t set outcome = 'failed', job_id = null, note = left(sqlerrm, 1000)
         where t.schedule = p.name and t.slot = p_slot;
    end;
    return true;
end $$;

-- Records slots of a schedule, submits their jobs and moves on to p_next, all or nothing, and only
-- - by the leader of p_epoch, or without an epoch by the holder of the check's lease;
-- - while the schedule is unchanged since it was read (p_seen) and at the same slot (p_from).
-- Whatever happens between two leaders, the key of schedule_slots prevents a second job for a slot.
-- A failed check is counted; the fifth in a row disables the schedule. With its owner's rights: a role that may
-- fire schedules need not be allowed to submit anything else.
create or replace function laneway.fire(
    p_name text, p_seen timestamptz, p_from timestamptz, p_next timestamptz, p_slots timestamptz[], p_outcomes text[],
    p_notes text[], p_holder uuid, p_epoch bigint, p_manual boolean default false, p_check_error text default null,
    out answer text, out taken integer, out job_type text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_schedule laneway.schedules;
    v_state    laneway.schedule_state;
begin
    taken := 0;
    -- Never waits for a concurrent change of the schedule: the worker's other duties would wait too, and, behind
    -- the leader's row, those of all workers.
    select * into v_schedule from laneway.schedules s where s.name = p_name for no key update skip locked;
    -- After the schedule's row is locked: of several concurrent callers, the one with that lock gets this one too.
    if found then
        select * into v_state from laneway.schedule_state t where t.name = p_name for no key update skip locked;
    end if;
    if v_state.name is null then
        answer := case when exists (select from laneway.schedules s where s.name = p_name)
                       then 'busy' else 'changed' end;
        return;
    end if;
    answer := 'fenced';
    if p_epoch is not null then
        -- Locked until the commit, so that no other process becomes leader before.
        perform from laneway.leader r
          where r.name = 'leader' and r.holder = p_holder and r.epoch = p_epoch and r.held_until > clock_timestamp()
            for share;
        if not found then return; end if;
    end if;
    if v_schedule.updated_at is distinct from p_seen or not (v_schedule.enabled or p_manual) then
        answer := 'changed';
        return;
    end if;
    if p_epoch is null and v_state.checking_by is distinct from p_holder
       or p_epoch is not null and v_schedule.check_name is not null then return; end if;
    if p_from is distinct from (case when p_manual then v_state.asked_at else v_state.next_at end) then
        answer := 'moved';
        return;
    end if;
    for i in 1 .. coalesce(cardinality(p_slots), 0) loop
        if laneway.take_slot(v_schedule, p_slots[i], p_manual, p_outcomes[i], p_notes[i],
                             case when p_manual then v_state.asked_by end) then
            taken := taken + 1;
        end if;
    end loop;
    answer := 'fired';
    job_type := v_schedule.job_type;
    update laneway.schedule_state t
       set next_at = case when p_manual then t.next_at else p_next end,
           last_at = case when p_manual then t.last_at else greatest(t.last_at, p_slots[cardinality(p_slots)]) end,
           asked_at = case when p_manual then null else t.asked_at end,
           asked_by = case when p_manual then null else t.asked_by end,
           check_failures = case when p_check_error is not null then t.check_failures + 1
                                 when p_outcomes && '{submitted,skipped}' then 0 else t.check_failures end,
           checking_by = null, checking_until = null
     where t.name = p_name;
    if p_check_error is not null and v_state.check_failures >= 4 and v_schedule.enabled then
        update laneway.schedules s
           set enabled = false, updated_by = 'laneway',
               error = left(format('the check %s failed %s times in a row, the last time with %s', s.check_name,
                                   v_state.check_failures + 1, p_check_error), 2000)
         where s.name = p_name;
    end if;
end $$;

-- Fires a schedule now as a separate slot, whether or not it is enabled. With p_check and a check, a worker that has
-- the check runs it first, and takes the slot. Null: unknown schedule.
create or replace function laneway.run_schedule(
    p_name text, p_by text, p_check boolean, out answer text, out slot timestamptz, out job_id uuid, out job_type text,
    out note text)
language plpgsql volatile as $$
declare
    v_schedule laneway.schedules;
begin
    select * into v_schedule from laneway.schedules s where s.name = p_name for no key update;
    if not found then return; end if;
    -- Never a whole second: those are for cron.
    slot := date_trunc('milliseconds', clock_timestamp()) + interval '1 microsecond';
    job_type := v_schedule.job_type;
    if p_check and v_schedule.check_name is not null then
        update laneway.schedule_state t set asked_at = run_schedule.slot, asked_by = p_by where t.name = p_name;
        answer := 'asked';
        return;
    end if;
    while not laneway.take_slot(v_schedule, slot, true, 'submitted', 'by ' || p_by, p_by) loop
        slot := slot + interval '1 microsecond';
    end loop;
    select t.outcome, t.job_id, t.note into answer, run_schedule.job_id, run_schedule.note
      from laneway.schedule_slots t where t.schedule = p_name and t.slot = run_schedule.slot;
end $$;
