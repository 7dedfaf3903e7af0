-- Records of what the database did, in the same transactions: only committed changes leave one.
-- `n` orders the records of one job, because changes of one job wait for each other.
create schema crash;
create sequence crash.n;

create table crash.seen (
    n        bigint primary key default nextval('crash.n'),
    at       timestamptz not null default clock_timestamp(),
    tx       xid8 not null default pg_current_xact_id(),
    by       text not null default current_setting('application_name'),
    what     text not null,
    seq      bigint,
    attempt  integer,
    more     jsonb not null default '{}'
);

create function crash.job() returns trigger language plpgsql as $$
begin
    insert into crash.seen (what, seq, more) values ('born', new.seq, jsonb_build_object(
        'op', new.payload ->> 'op', 'unique_key', new.unique_key, 'max_retries', new.max_retries,
        'run_at', extract(epoch from new.run_at), 'needs', new.payload ->> 'needs', 'created_by', new.created_by));
    return null;
end $$;
create trigger crash_job after insert on laneway.jobs for each row execute function crash.job();

-- A digest of the job's current payload.
create function crash.digest(p_seq bigint) returns text language sql as $$
    select md5(j.payload::text) from laneway.jobs j where j.seq = p_seq
$$;

create function crash.lease() returns trigger language plpgsql as $$
begin
    if tg_op = 'INSERT' then
        insert into crash.seen (what, seq, attempt, more) values ('claim', new.seq, new.attempt, jsonb_build_object(
            'lane', new.lane, 'worker', new.worker_id, 'lease_until', extract(epoch from new.lease_until),
            'analysis', new.job_type like E'\x01%', 'payload', crash.digest(new.seq)));
    elsif tg_op = 'DELETE' then
        insert into crash.seen (what, seq, attempt, more) values ('end', old.seq, old.attempt, jsonb_build_object(
            'worker', old.worker_id, 'lease_until', extract(epoch from old.lease_until)));
    else
        if new.lease_until <> old.lease_until then
            insert into crash.seen (what, seq, attempt, more) values ('renew', new.seq, new.attempt,
                jsonb_build_object('lease_until', extract(epoch from new.lease_until)));
        end if;
        if new.cancel_requested_at is not null and old.cancel_requested_at is null then
            insert into crash.seen (what, seq, attempt) values ('cancel_requested', new.seq, new.attempt);
        end if;
    end if;
    return null;
end $$;
create trigger crash_lease after insert or update or delete on laneway.lease
    for each row execute function crash.lease();

create function crash.outcome() returns trigger language plpgsql as $$
declare
    v_callers text;
begin
    if tg_op = 'DELETE' then
        get diagnostics v_callers = pg_context;
        insert into crash.seen (what, seq, attempt, more) values ('reopened', old.seq, old.attempt,
            jsonb_build_object('by_operator', strpos(v_callers, 'function laneway.retry(') > 0));
    else
        insert into crash.seen (what, seq, attempt, more) values ('outcome', new.seq, new.attempt,
            jsonb_build_object('status', new.status, 'claimed', new.claimed_at is not null, 'error', new.error));
    end if;
    return null;
end $$;
create trigger crash_outcome after insert or delete on laneway.outcome
    for each row execute function crash.outcome();

create function crash.link() returns trigger language plpgsql as $$
begin
    insert into crash.seen (what, seq, more) values ('linked', new.seq, jsonb_build_object(
        'owner', (select j.id from laneway.jobs j where j.seq = new.owner), 'rule', new.after_failure,
        'parents', (select jsonb_agg(j.id) from laneway.jobs j where j.seq = any (new.parents))));
    return null;
end $$;
create trigger crash_link after insert or update on laneway.links for each row execute function crash.link();

create function crash.attempt() returns trigger language plpgsql as $$
begin
    insert into crash.seen (what, seq, attempt, more) values ('kept', new.seq, new.attempt,
        jsonb_build_object('outcome', new.outcome, 'error', new.error));
    return null;
end $$;
create trigger crash_attempt after insert on laneway.attempts for each row execute function crash.attempt();

create function crash.report() returns trigger language plpgsql as $$
begin
    insert into crash.seen (what, seq, attempt) values (tg_argv[0], new.seq, new.attempt);
    return null;
end $$;
create trigger crash_progress after insert or update on laneway.progress
    for each row execute function crash.report('progress');
create trigger crash_log after insert on laneway.logs for each row execute function crash.report('log');

create function crash.worker() returns trigger language plpgsql as $$
begin
    insert into crash.seen (what, more) values ('worker', jsonb_build_object('worker', new.id, 'pid', new.pid));
    return null;
end $$;
create trigger crash_worker after insert on laneway.workers for each row execute function crash.worker();

-- Which of the server's processes serves the leader, as of its last sign of life.
create table crash.leading (pid integer not null);
insert into crash.leading values (0);

create function crash.leader() returns trigger language plpgsql as $$
begin
    update crash.leading set pid = pg_backend_pid();
    if tg_op = 'INSERT' or new.holder <> old.holder then
        insert into crash.seen (what, more) values ('leader', jsonb_build_object(
            'holder', new.holder, 'epoch', new.epoch,
            'held_until', case when tg_op = 'UPDATE' and old.held_until > '-infinity'
                               then extract(epoch from old.held_until) else 0 end));
    end if;
    return null;
end $$;
create trigger crash_leader after insert or update on laneway.leader
    for each row execute function crash.leader();

create function crash.decision() returns trigger language plpgsql as $$
begin
    insert into crash.seen (what, seq, more) values ('decision', new.seq, jsonb_build_object(
        'decision', new.decision, 'who', new.decided_by, 'payload', crash.digest(new.seq)));
    return null;
end $$;
create trigger crash_decision after insert on laneway.decisions
    for each row execute function crash.decision();

create function crash.slot() returns trigger language plpgsql as $$
begin
    insert into crash.seen (what, more) values ('slot', jsonb_build_object(
        'schedule', new.schedule, 'slot', extract(epoch from new.slot)::float8, 'outcome', new.outcome,
        'made', new.job_id, 'note', new.note));
    return null;
end $$;
create trigger crash_slot after insert on laneway.schedule_slots for each row execute function crash.slot();

-- What handlers write in their own transactions, and in which.
create table crash.ledger (
    n        bigint generated always as identity primary key,
    job      uuid not null,
    attempt  integer not null,
    part     integer not null,
    tx       xid8 not null default pg_current_xact_id()
);

-- A sink that takes each attempt of a job only if it is newer than those it has seen.
create table crash.sink (job uuid primary key, attempt integer not null);
create function crash.effect(p_job uuid, p_attempt integer) returns boolean language plpgsql as $$
declare
    v_taken boolean;
begin
    insert into crash.sink as s values (p_job, p_attempt)
    on conflict (job) do update set attempt = excluded.attempt where s.attempt < excluded.attempt;
    v_taken := found;
    insert into crash.seen (what, seq, attempt, more)
    select 'effect', j.seq, p_attempt, jsonb_build_object('accepted', v_taken)
      from laneway.jobs j where j.id = p_job;
    return v_taken;
end $$;
