-- Functions that only landed versions call: their workers run next to those of this version during an upgrade. Each
-- calls its successor and has no rights besides. A name leaves this file when no version that calls it is supported.

create or replace function laneway.bury(
    p_worker uuid, p_hung boolean, p_culprit bigint, p_message text, p_began bigint[] default null)
returns integer language sql volatile as $$
    select laneway.fail_worker(p_worker, p_hung, p_culprit, p_message, p_began)
$$;

create or replace function laneway.watch(
    p_holder uuid, p_ttl_s double precision, p_limit integer, p_now timestamptz default null,
    out epoch bigint, out reclaimed integer, out job_types text[], out more boolean, out has_duties boolean)
language sql volatile as $$
    select w.epoch, w.reclaimed, w.job_types, w.more, w.has_duties
      from laneway.run_watchdog(p_holder, p_ttl_s, p_limit, p_now) w
$$;

create or replace function laneway.leads(p_holder uuid, p_epoch bigint, p_now timestamptz default null)
returns boolean language sql volatile as $$
    select laneway.is_leader(p_holder, p_epoch, p_now)
$$;

create or replace function laneway.retain(
    p_holder uuid, p_epoch bigint, p_before bigint, p_types text[], p_counts bigint[],
    p_scan integer, p_limit integer,
    out removed integer, out before bigint, out types text[], out counts bigint[])
language sql volatile as $$
    select * from laneway.delete_expired(p_holder, p_epoch, p_before, p_types, p_counts, p_scan, p_limit)
$$;

create or replace function laneway.fold_finished(p_limit integer default 200) returns integer
language sql volatile as $$
    select laneway.release_self_finished(p_limit)
$$;

create or replace function laneway.finish_apart(
    p_seq bigint, p_attempt integer, p_result text, p_ran_s double precision)
returns text language sql volatile as $$
    select laneway.finish_in_transaction(p_seq, p_attempt, p_result, p_ran_s)
$$;

create or replace function laneway.step(
    p_seq bigint, p_attempt integer, p_name text, p_result text, p_took_s double precision,
    p_now timestamptz default null, out answer text, out result text)
language sql volatile as $$
    select * from laneway.save_step(p_seq, p_attempt, p_name, p_result, p_took_s, p_now)
$$;

create or replace function laneway.place(p_seq bigint, p_now timestamptz, p_needs text) returns text
language sql volatile as $$
    select laneway.start_approval(p_seq, p_now, p_needs)
$$;

create or replace function laneway.standing(
    p_seq bigint, p_bound integer,
    out ahead integer, out can_run integer, out limits jsonb, out key_holder bigint, out key_waits boolean)
language sql volatile as $$
    select * from laneway.queue_position(p_seq, p_bound)
$$;

create or replace function laneway.seen_log() returns pg_snapshot language sql volatile as $$
    select laneway.log_snapshot()
$$;

create or replace function laneway.charge(
    p_principal uuid, p_ids uuid[], p_bytes bigint[], p_max_queued bigint, p_max_bytes bigint, p_max_types bigint)
returns void language sql volatile as $$
    select laneway.charge_quota(p_principal, p_ids, p_bytes, p_max_queued, p_max_bytes, p_max_types)
$$;

create or replace function laneway.check_queue(
    p_principal uuid, p_jobs bigint, p_bytes bigint, p_types text[], p_max_queued bigint, p_max_bytes bigint,
    p_max_types bigint)
returns void language sql stable as $$
    select laneway.check_quota(p_principal, p_jobs, p_bytes, p_types, p_max_queued, p_max_bytes, p_max_types)
$$;

create or replace function laneway.binds(p_application text, p_seen timestamptz) returns boolean
language sql stable as $$
    select laneway.is_current_publisher(p_application, p_seen)
$$;

create or replace function laneway.merge_publications(p_types jsonb) returns jsonb language sql volatile as $$
    select laneway.save_publications(p_types)
$$;

-- Calls search_jobs until the page is full.
create or replace function laneway.matching(
    p_status text, p_before bigint, p_limit integer, p_lane text, p_job_type text, p_tag text, p_worker text,
    p_workspace text, p_since timestamptz, p_until timestamptz, p_older_than_s double precision,
    p_newer_than_s double precision, p_q text, p_max_cost numeric, p_unit text, p_within jsonb default null)
returns table (seq bigint, id uuid)
language plpgsql volatile as $$
#variable_conflict use_variable
declare
    v_before bigint := p_before;
    v_left   integer := p_limit;
begin
    loop
        seq := null;
        id := null;
        for seq, id in
            select s.seq, s.id from laneway.search_jobs(
                p_status, v_before, v_left, p_lane, p_job_type, p_tag, p_worker, p_workspace, p_since, p_until,
                p_older_than_s, p_newer_than_s, p_q, p_max_cost, p_unit, p_within, 50000) s
        loop
            exit when id is null;
            v_left := v_left - 1;
            return next;
        end loop;
        exit when seq is null or id is not null or v_left <= 0;
        v_before := seq;
    end loop;
end $$;

create or replace function laneway.adopt_types(
    p_lanes text[], p_types text[], p_max_slots integer, p_poll_ms integer, p_stale_minutes integer, p_lease_s integer,
    p_by text)
returns setof text language sql volatile as $$
    select * from laneway.assign_types(p_lanes, p_types, jsonb_build_object(
        'max_slots', p_max_slots, 'poll_interval_ms', p_poll_ms, 'stale_timeout_minutes', p_stale_minutes,
        'lease_seconds', p_lease_s, 'enabled', true), p_by)
$$;

create or replace function laneway.adopt_type(p_lane text, p_job_type text, p_by text) returns boolean
language plpgsql volatile as $$
begin
    if not exists (select from laneway.worker_lanes where name = p_lane)
       or exists (select from laneway.worker_lanes where p_job_type = any (job_types)) then
        return false;
    end if;
    perform laneway.assign_types(array[p_lane], array[p_job_type], '{}', p_by);
    return exists (select from laneway.worker_lanes where name = p_lane and p_job_type = any (job_types));
end $$;

create or replace function laneway.waits_of(p_seq bigint)
returns table (name text, kind text, event text, key text, total integer, stored integer)
language sql stable as $$
    select w.name, w.kind, w.event, w.key, w.total, w.stored from laneway.stored_waits(array[p_seq], 0) w
$$;
