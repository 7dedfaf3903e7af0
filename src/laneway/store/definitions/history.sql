-- Records the actor, the old and the new state of each change, also of changes by SQL. Actor: the setting
-- laneway.actor, which Laneway's statements set; else updated_by or paused_by if this change set it (an old
-- value does not identify this actor); else the login. With its owner's rights: a role that may change a lane
-- needs no write access to the history. The setting laneway.changes lists the entries of the transaction;
-- xmin does not work with savepoints.
create or replace function laneway.keep_history() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_old    jsonb := case when tg_op <> 'INSERT' then to_jsonb(old) end;
    v_new    jsonb := case when tg_op <> 'DELETE' then to_jsonb(new) end;
    v_before jsonb := v_old - '{updated_at,updated_by,version}'::text[];
    v_after  jsonb := v_new - '{updated_at,updated_by,version}'::text[];
    v_signed text := coalesce(v_new ->> 'updated_by', v_new ->> 'paused_by');
    v_id     bigint;
begin
    if v_before is distinct from v_after then
        if v_signed = coalesce(v_old ->> 'updated_by', v_old ->> 'paused_by') then v_signed := null; end if;
        insert into laneway.control_history (by, kind, name, before, after)
        values (coalesce(nullif(current_setting('laneway.actor', true), ''), v_signed, session_user),
                tg_argv[0], coalesce(v_new ->> 'name', v_old ->> 'name', 'pause'), v_before, v_after)
        returning id into v_id;
        if exists (select from laneway.watches w where w.seq = -1) then
            insert into laneway.events (name, workspace, lane, job_type, state)
            select tg_argv[0] || '.changed', s.one ->> 'workspace',
                   case when tg_argv[0] = 'lane' then s.one ->> 'name'
                        when tg_argv[0] = 'schedule' then laneway.lane_of(s.one ->> 'job_type') end,
                   s.one ->> 'job_type',
                   jsonb_build_object('name', coalesce(s.one ->> 'name', 'pause'), 'by', h.by, 'before', v_before,
                                      'after', v_after)
              from (select coalesce(v_after, v_before) as one) s, laneway.control_history h where h.id = v_id;
            perform pg_notify('laneway_events', '');
        end if;
        perform set_config('laneway.changes',
                           concat_ws(',', nullif(current_setting('laneway.changes', true), ''), v_id), true);
    end if;
    return null;
end $$;

-- Whether a live worker has a job type, or jobs of it wait or run. Publication alone does not count: a published
-- type stays published.
create or replace function laneway.is_type_in_use(p_job_type text) returns boolean language sql stable as $$
    select exists (select from laneway.workers w
                    where w.stopped_at is null and w.seen_at > clock_timestamp() - interval '45 seconds'
                      and p_job_type = any (w.job_types))
        or exists (select from laneway.ready r where r.job_type in (p_job_type, laneway.analysis_of(p_job_type)))
        or exists (select from laneway.lease l where l.job_type in (p_job_type, laneway.analysis_of(p_job_type)))
        or exists (select from laneway.key_waiters k where k.job_type = p_job_type)
        or exists (select from laneway.awaiting a where a.job_type = p_job_type)
        or exists (select from laneway.waiting w where w.job_type = p_job_type)
        or exists (select from laneway.delayed d where d.job_type in (p_job_type, laneway.analysis_of(p_job_type)))
$$;

-- What blocks the deletion of a lane or a limit; null: nothing. Without its lane a job type would run in
-- `default`, which is unbounded; without its limit it would have none.
create or replace function laneway.deletion_blocker(p_kind text, p_name text) returns text language sql stable as $$
    select case p_kind
        when 'lane' then coalesce(
            case when p_name in ('default', 'analysis') then 'there must always be one' end,
            (select format('%s running in it', case count(*) when 1 then 'a job is' else count(*) || ' jobs are' end)
               from laneway.lease l where l.lane = p_name having count(*) > 0),
            (select format('it lists job types that are in use (%s); move them to another lane first',
                           string_agg(t.name, ', ' order by t.name))
               from laneway.worker_lanes l join laneway.job_types t on t.name = any (l.job_types)
              where l.name = p_name having count(*) > 0))
        when 'limit' then coalesce(
            (select format('the handlers of %s need it', string_agg(t.name, ', ' order by t.name))
               from laneway.job_types t
              where p_name = any (t.limits) and laneway.is_type_in_use(t.name) having count(*) > 0),
            (select format('it is held %s', case sum(u.running) when 1 then 'once' else sum(u.running) || ' times' end)
               from laneway.limits_held u where u.limit_name = p_name having sum(u.running) > 0)) end
$$;

-- Restores a lane, limit or schedule to its state before its newest change, or right after the change p_to (0:
-- before the first recorded one), as a new change. Settings that the old state lacks keep their value. `answer`:
-- done (as the change `id`), same (unchanged), needed (it cannot be deleted, see `hindrance`), no_object,
-- no_change.
create or replace function laneway.roll_back(p_kind text, p_name text, p_to bigint, p_by text,
    out answer text, out id bigint, out hindrance text)
language plpgsql volatile as $$
#variable_conflict use_column
declare
    v_table   regclass := case p_kind when 'lane' then 'laneway.worker_lanes' when 'limit' then 'laneway.limits'
                                      when 'schedule' then 'laneway.schedules' end;
    v_present jsonb;
    v_state   jsonb;
    v_columns text;
begin
    -- In the same lock order as every other change.
    if p_kind = 'schedule' then
        -- Its payload was checked when it was in force.
        perform set_config('laneway.payload_checked', 'on', true);
        perform from laneway.schedules s where s.name = p_name for update;
    else
        perform pg_advisory_xact_lock(5577006791947779410);
    end if;
    execute format('select to_jsonb(t) from %s t where t.name = $1', v_table) into v_present using p_name;
    if p_to > 0 then
        select h.after into v_state from laneway.control_history h
         where h.kind = p_kind and h.name = p_name and h.id = p_to;
    else
        select h.before into v_state from laneway.control_history h where h.kind = p_kind and h.name = p_name
         order by case when p_to = 0 then h.id else -h.id end limit 1;
    end if;
    if not found then
        answer := case when v_present is null and p_to is null then 'no_object' else 'no_change' end;
        return;
    end if;
    perform set_config('laneway.actor', p_by, true);
    if v_state is null then
        if v_present is null then answer := 'same'; return; end if;
        hindrance := laneway.deletion_blocker(p_kind, p_name);
        if hindrance is not null then answer := 'needed'; return; end if;
        execute format('delete from %s where name = $1', v_table) using p_name;
    else
        select string_agg(quote_ident(a.attname), ', ' order by a.attnum), jsonb_object_agg(a.attname, v_state -> a.attname)
          into v_columns, v_state
          from pg_attribute a
         where a.attrelid = v_table and a.attnum > 0 and not a.attisdropped and v_state ? a.attname;
        if v_present || v_state = v_present then answer := 'same'; return; end if;
        if v_present is null then
            execute format('insert into %1$s (%2$s, updated_by)
                            select %2$s, $2 from jsonb_populate_record(null::%1$s, $1)', v_table, v_columns)
              using v_state, p_by;
        else
            execute format('update %1$s t set (%2$s, updated_by) =
                            (select %2$s, $2 from jsonb_populate_record(null::%1$s, $1)) where t.name = $3',
                           v_table, v_columns)
              using v_state, p_by, p_name;
        end if;
    end if;
    answer := 'done';
    select max(h.id) into id from laneway.control_history h
     where h.kind = p_kind and h.name = coalesce(v_state ->> 'name', p_name);
end $$;
