-- Stores many new jobs in the caller's transaction, all or none, by the rules of laneway.submit: for roles without
-- write access to the tables, and for drivers without COPY. p_payloads: an array with the payload of each job.
-- p_kinds: shared settings, as objects with the parameter names of laneway.submit (delay in seconds). p_kind_of:
-- the index in p_kinds, from 0, for each job. Returns a row per job, in the order given. p_max_payload_bytes
-- 2147483647: the caller has checked the payloads against its settings. p_flow: the flow that the jobs join. p_after: null,
-- or an array with, per job, null or an object: after (ids of jobs, also of earlier ones in the batch), after_failure,
-- name (in its flow). With its owner's rights, like laneway.submit. Refuses deliveries to webhooks.
create or replace function laneway.submit_batch(
    p_ids uuid[], p_payloads jsonb, p_kind_of integer[], p_kinds jsonb,
    p_max_payload_bytes integer default 1048576, p_max_key_bytes integer default 512,
    p_after jsonb default null, p_flow uuid default null)
returns table (job_id uuid, status text, duplicate boolean)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
    v_kind integer;
begin
    select k.n - 1 into v_kind from jsonb_array_elements(p_kinds) with ordinality as k (kind, n)
     where k.kind ->> 'job_type' = 'laneway.webhook' limit 1;
    if found then
        raise exception using errcode = 'LW001', message = format(
            'jobs[%s].job_type: only the end of a job submits deliveries', coalesce(array_position(p_kind_of, v_kind), 1) - 1);
    end if;
    return query select * from laneway.store_batch(
        p_ids, p_payloads, p_kind_of, p_kinds, p_max_payload_bytes, p_max_key_bytes, p_after, p_flow);
end $$;

-- laneway.submit_batch, also for deliveries to webhooks: for functions that submit jobs with the end of others.
create or replace function laneway.store_batch(
    p_ids uuid[], p_payloads jsonb, p_kind_of integer[], p_kinds jsonb,
    p_max_payload_bytes integer, p_max_key_bytes integer, p_after jsonb, p_flow uuid)
returns table (job_id uuid, status text, duplicate boolean)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
set jit = off
as $$
#variable_conflict use_column
declare
    v_now      timestamptz := clock_timestamp();
    v_count    integer := coalesce(cardinality(p_ids), 0);
    v_narrow   text[] := nullif(current_setting('laneway.workspaces', true), '')::text[];
    v_kinds    laneway.submit_kind[];
    -- The unique key of each job, null for most.
    v_keys     text[];
    v_seqs     bigint[];
    -- The job whose period has the key of each job, found without a lock: a duplicate that stores nothing locks nothing.
    v_known    bigint[];
    -- The number of the job with the unique key of each job: its own, unless it is a duplicate.
    v_holders  bigint[];
    -- Jobs whose key an ended job has for its period, and those ended jobs.
    v_lost     bigint[];
    v_older    bigint[];
    v_statuses text[] := array_fill('approved'::text, array[v_count]);
    v_problem  text;
    v_stored   bigint;
    v_odd      record;
    v_flow     bigint;
    -- Jobs to cancel at once, and the failed jobs that they come after.
    v_ended    bigint[];
    v_causes   bigint[];
begin
    if jsonb_array_length(p_payloads) is distinct from v_count or cardinality(p_kind_of) is distinct from v_count
       or array_position(p_ids, null) is not null then
        raise exception using errcode = 'LW001', message = 'jobs: each needs an id, a payload and a kind';
    end if;
    -- A delay out of range may not fit into an interval: like any negative one it is refused.
    v_kinds := array(
        select row(k.n - 1, k.job_type, k.workspace, coalesce(k.priority, t.priority, 0),
                   coalesce(k.max_retries, t.max_retries, 3), coalesce(k.run_at, v_now + k.delay),
                   k.unique_key, k.tags, k.created_by, k.traceparent, k.concurrency_key, k.needs,
                   coalesce(t.max_age_s, k.max_age),
                   coalesce(t.has_analysis or t.approval <> 'never', false) or k.needs is not null,
                   coalesce(laneway.unique_problem(k.job_type, k.unique_for, k.unique_by, t.arguments), laneway.submit_problem(
                       k.job_type, k.workspace, coalesce(k.priority, t.priority, 0), k.max_retries, k.run_at, k.delay,
                       k.unique_key, k.tags, k.created_by, k.traceparent, k.concurrency_key, k.needs, k.max_age,
                       t.two_person, p_max_key_bytes, v_now)),
                   coalesce(k.unique_for, t.unique_for_s),
                   case when coalesce(k.unique_for, t.unique_for_s) is not null then coalesce(k.unique_for, t.unique_for_s) > 0
                        else coalesce(k.unique_by, t.unique_by) is not null end,
                   coalesce(k.unique_by, t.unique_by), t.arguments)::laneway.submit_kind
          from (select r.job_type, coalesce(r.workspace, 'default') as workspace, r.priority, r.max_retries, r.run_at,
                       case when r.delay between 0 and 3162240000 then make_interval(secs => r.delay)
                            when r.delay is not null then interval '-1 s' end as delay,
                       r.unique_key, r.tags, r.created_by, r.traceparent, r.concurrency_key, r.needs, r.max_age,
                       r.unique_for, r.unique_by, r.n
                  from rows from (jsonb_to_recordset(p_kinds) as (
                           job_type text, workspace text, priority integer, max_retries integer, run_at timestamptz,
                           delay double precision, unique_key text, tags text[], created_by text, traceparent text,
                           concurrency_key text, needs text, max_age double precision, unique_for double precision,
                           unique_by text[])) with ordinality
                       as r (job_type, workspace, priority, max_retries, run_at, delay, unique_key, tags, created_by,
                             traceparent, concurrency_key, needs, max_age, unique_for, unique_by, n)) k
          left join laneway.job_types t on t.name = k.job_type
         order by k.n);
    select format('jobs[%s].kind: must be a place in p_kinds, 0 to %s', g.n - 1, cardinality(v_kinds) - 1) into v_problem
      from unnest(p_kind_of) with ordinality as g (kind, n)
     where g.kind is null or g.kind not between 0 and cardinality(v_kinds) - 1
     order by g.n limit 1;
    if v_problem is null then
        select format('jobs[%s].%s', coalesce(array_position(p_kind_of, k.kind), 1) - 1, k.problem) into v_problem
          from unnest(v_kinds) k
         where k.problem is not null order by array_position(p_kind_of, k.kind) limit 1;
    end if;
    if v_problem is null and p_max_payload_bytes < 2147483647 then
        select format('jobs[%s].payload: %s', p.n - 1, p.problem) into v_problem
          from (select e.n, laneway.payload_problem(e.payload, p_max_payload_bytes) as problem
                  from jsonb_array_elements(p_payloads) with ordinality as e (payload, n)) p
         where p.problem is not null order by p.n limit 1;
    end if;
    if v_problem is not null then
        raise exception using errcode = 'LW001', message = v_problem;
    end if;
    select format('row-level security: jobs[%s].workspace %s is outside of laneway.workspaces',
                  coalesce(array_position(p_kind_of, k.kind), 1) - 1, k.workspace) into v_problem
      from unnest(v_kinds) k where k.workspace <> all (v_narrow) order by array_position(p_kind_of, k.kind) limit 1;
    if v_problem is not null then
        raise insufficient_privilege using message = v_problem;
    end if;

    if p_flow is not null then
        v_flow := laneway.flow_to_join(p_flow, array(
            select distinct k.workspace from unnest(v_kinds) k where k.kind = any (p_kind_of)));
    end if;

    -- Assign the transaction id before the sequence numbers: floors rely on it.
    perform pg_current_xact_id();
    v_seqs := array(select nextval('laneway.jobs_seq_seq') from generate_series(1, v_count));
    v_holders := v_seqs;
    v_keys := array_fill(null::text, array[v_count]);
    v_known := array_fill(null::bigint, array[v_count]);
    if exists (select from unnest(v_kinds) k where k.unique_key is not null or k.is_unique) then
        v_keys := array(
            select coalesce(k.unique_key, case when k.is_unique
                                               then laneway.unique_key_of(g.payload, k.unique_by, k.arguments) end)
              from rows from (unnest(p_kind_of), jsonb_array_elements(p_payloads)) with ordinality as g (kind, payload, n)
              join unnest(v_kinds) k on k.kind = g.kind
             order by g.n);
    end if;
    if exists (select from unnest(v_kinds) k where k.unique_for > 0) then
        v_known := array(
            select (select u.seq from laneway.unique_periods u
                     where k.unique_for > 0 and u.workspace = k.workspace and u.job_type = k.job_type and u.unique_key = g.key
                       and u.until > v_now and exists (select from laneway.jobs j where j.seq = u.seq))
              from unnest(p_kind_of, v_keys) with ordinality as g (kind, key, n) join unnest(v_kinds) k on k.kind = g.kind
             order by g.n);
    end if;
    for i in 1 .. 100 loop
        exit when not exists (select from unnest(v_kinds) k where k.unique_key is not null or k.is_unique);
        insert into laneway.job_keys (workspace, job_type, unique_key, seq)
        select m.workspace, m.job_type, m.unique_key, m.seq from (
            select distinct on (k.workspace collate "C", k.job_type collate "C", g.key collate "C")
                   k.workspace, k.job_type, g.key as unique_key, g.seq
              from unnest(p_kind_of, v_seqs, v_keys, v_known) as g (kind, seq, key, known)
              join unnest(v_kinds) k on k.kind = g.kind
             where g.key is not null and g.known is null
             order by k.workspace collate "C", k.job_type collate "C", g.key collate "C", g.seq) m
        on conflict do nothing;
        v_holders := array(
            select case when g.key is null then g.seq else coalesce(g.known, h.seq) end
              from unnest(p_kind_of, v_seqs, v_keys, v_known) with ordinality as g (kind, seq, key, known, n)
              join unnest(v_kinds) k on k.kind = g.kind
              left join laneway.job_keys h
                on h.workspace = k.workspace and h.job_type = k.job_type and h.unique_key = g.key
             order by g.n);
        -- A holder that ended in between has freed its key.
        exit when array_position(v_holders, null) is null;
        if i = 100 then
            raise exception 'a unique_key of the batch belongs to a job that does not exist';
        end if;
    end loop;
    if exists (select from unnest(v_kinds) k where k.is_unique and k.unique_for > 0) then
        insert into laneway.unique_periods as u (workspace, job_type, unique_key, seq, until)
        select k.workspace, k.job_type, g.key, g.seq, v_now + make_interval(secs => k.unique_for)
          from unnest(p_kind_of, v_seqs, v_holders, v_keys) as g (kind, seq, holder, key)
          join unnest(v_kinds) k on k.kind = g.kind
         where g.holder = g.seq and g.key is not null and k.unique_for > 0
         order by k.workspace collate "C", k.job_type collate "C", g.key collate "C"
        on conflict on constraint unique_periods_pkey
        do update set seq = excluded.seq, until = excluded.until where u.until <= v_now;
        -- The period of an ended job continues: free the key again, and return that job.
        select array_agg(g.seq), array_agg(u.seq) into v_lost, v_older
          from unnest(p_kind_of, v_seqs, v_holders, v_keys) as g (kind, seq, holder, key)
          join unnest(v_kinds) k on k.kind = g.kind
          join laneway.unique_periods u on u.workspace = k.workspace and u.job_type = k.job_type and u.unique_key = g.key
         where g.holder = g.seq and k.unique_for > 0 and u.seq <> g.seq;
        if v_lost is not null then
            delete from laneway.job_keys h
             using unnest(p_kind_of, v_seqs, v_keys) as g (kind, seq, key) join unnest(v_kinds) k on k.kind = g.kind
             where g.seq = any (v_lost) and h.workspace = k.workspace and h.job_type = k.job_type and h.unique_key = g.key;
            v_holders := array(
                select coalesce(l.older, g.holder) from unnest(v_holders) with ordinality as g (holder, n)
                  left join unnest(v_lost, v_older) as l (seq, older) on l.seq = g.holder
                 order by g.n);
        end if;
    end if;

    insert into laneway.jobs (seq, id, job_type, workspace, payload, priority, max_retries, run_at, unique_key, tags,
                              created_at, created_by, traceparent, concurrency_key, flow)
    select g.seq, g.id, k.job_type, k.workspace, g.payload, k.priority, k.max_retries, k.run_at, g.key, k.tags,
           v_now, k.created_by, k.traceparent, k.concurrency_key, v_flow
      from rows from (unnest(v_seqs), unnest(v_holders), unnest(p_ids), unnest(p_kind_of), unnest(v_keys),
                      jsonb_array_elements(p_payloads)) as g (seq, holder, id, kind, key, payload)
      join unnest(v_kinds) k on k.kind = g.kind
     where g.holder = g.seq;
    get diagnostics v_stored = row_count;
    if v_stored <> (select count(*) from unnest(v_seqs, v_holders) as u (s, h) where u.s = u.h) then
        raise exception 'only % jobs of the batch were stored', v_stored;
    end if;
    if v_holders <> v_seqs then
        select g.key into v_problem from unnest(v_seqs, v_holders, v_keys) as g (seq, holder, key)
         where g.holder <> g.seq and not exists (select from laneway.jobs j where j.seq = g.holder) limit 1;
        if found then
            raise exception 'unique_key % belongs to a job that does not exist', v_problem;
        end if;
    end if;
    if p_after is not null or v_flow is not null then
        for v_odd in
            select l.* from laneway.link_jobs(v_seqs, p_ids, v_holders, array(
                select k.workspace from unnest(p_kind_of) with ordinality as g (kind, n)
                  join unnest(v_kinds) k on k.kind = g.kind order by g.n),
                coalesce(p_after, to_jsonb(array_fill(null::text, array[v_count]))), v_flow, true, v_now) l
        loop
            v_statuses[v_odd.place] := case when v_odd.cause is null then 'waiting' else 'cancelled' end;
            if v_odd.cause is not null then
                v_ended := v_ended || v_odd.seq;
                v_causes := v_causes || v_odd.cause;
            end if;
        end loop;
    end if;
    insert into laneway.ready (seq, job_type, rank, ready_at)
    select g.seq, k.job_type, -k.priority, v_now
      from unnest(v_seqs, v_holders, p_kind_of, v_statuses) as g (seq, holder, kind, status)
      join unnest(v_kinds) k on k.kind = g.kind
     where g.holder = g.seq and g.status = 'approved' and not k.is_gated and (k.run_at > v_now) is not true;
    insert into laneway.delayed (seq, job_type, rank, run_at)
    select g.seq, k.job_type, -k.priority, k.run_at
      from unnest(v_seqs, v_holders, p_kind_of, v_statuses) as g (seq, holder, kind, status)
      join unnest(v_kinds) k on k.kind = g.kind
     where g.holder = g.seq and g.status = 'approved' and not k.is_gated and k.run_at > v_now;
    for v_odd in
        select g.n, g.seq, k.needs, k.max_age, k.is_gated
          from unnest(v_seqs, v_holders, p_kind_of) with ordinality as g (seq, holder, kind, n)
          join unnest(v_kinds) k on k.kind = g.kind
         where g.holder = g.seq and (k.is_gated or k.max_age is not null)
         order by g.n
    loop
        if v_odd.is_gated and v_statuses[v_odd.n] <> 'approved' then
            insert into laneway.approvals (seq, asked) select v_odd.seq, v_odd.needs where v_odd.needs is not null;
        elsif v_odd.is_gated then
            v_statuses[v_odd.n] := laneway.start_approval(v_odd.seq, v_now, v_odd.needs);
        end if;
        if v_odd.max_age is not null then
            insert into laneway.deadlines (seq, at) values (v_odd.seq, v_now + make_interval(secs => v_odd.max_age));
        end if;
    end loop;
    if exists (select from laneway.watches) then
        perform laneway.emit(array(select h from unnest(v_seqs, v_holders) as u (s, h) where u.s = u.h), 'submitted');
    end if;
    perform laneway.end_unstarted(u.seq, u.cause, v_now) from unnest(v_ended, v_causes) as u (seq, cause);
    if v_holders = v_seqs then
        return query select u.id, u.status, false from unnest(p_ids, v_statuses) as u (id, status);
    else
        return query
        select case when g.holder = g.seq then g.id else v.id end, case when g.holder = g.seq then g.status else v.status end,
               g.holder <> g.seq
          from unnest(p_ids, v_seqs, v_holders, v_statuses) with ordinality as g (id, seq, holder, status, n)
          left join lateral (select h.id, h.status from laneway.jobs_view h
                              where g.holder <> g.seq and h.seq = g.holder offset 0) v on true
         order by g.n;
    end if;
end $$;
