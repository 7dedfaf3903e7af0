-- Many new jobs in the caller's transaction, all or none, as laneway.submit would store each: for roles that may not write
-- the tables, and for drivers without COPY. p_payloads is an array with the payload of each job. What jobs have in common
-- is said once, in p_kinds: objects with the names of laneway.submit's parameters (delay in seconds); p_kind_of says which
-- one, from 0, each job is of. A row per job, in the order given. The caller has checked sizes against its own settings.
-- With the rights of its owner, like laneway.submit.
create or replace function laneway.submit_batch(p_ids uuid[], p_payloads jsonb, p_kind_of integer[], p_kinds jsonb)
returns table (job_id uuid, status text, duplicate boolean)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
set jit = off
as $$
#variable_conflict use_column
declare
    v_now      timestamptz := clock_timestamp();
    v_count    integer := coalesce(cardinality(p_ids), 0);
    v_narrow   text[] := nullif(current_setting('laneway.workspaces', true), '')::text[];
    v_kinds    laneway.batch_kind[];
    v_seqs     bigint[];
    -- Who has the unique key of each job: its own number, unless it is a duplicate.
    v_holders  bigint[];
    v_statuses text[] := array_fill('approved'::text, array[v_count]);
    v_problem  text;
    v_odd      record;
begin
    if jsonb_array_length(p_payloads) <> v_count or cardinality(p_kind_of) is distinct from v_count then
        raise exception using errcode = 'LW001', message = 'jobs: each needs an id, a payload and a kind';
    end if;
    v_kinds := array(
        select row(k.n - 1, k.job_type, coalesce(k.workspace, 'default'), coalesce(k.priority, t.priority, 0),
                   coalesce(k.max_retries, t.max_retries, 3), coalesce(k.run_at, v_now + make_interval(secs => k.delay)),
                   k.unique_key, k.tags, k.created_by, k.traceparent, k.concurrency_key, k.needs,
                   coalesce(t.max_age_s, k.max_age), coalesce(t.two_person, false),
                   coalesce(t.has_analysis or t.approval <> 'never', false) or k.needs is not null)::laneway.batch_kind
          from rows from (jsonb_to_recordset(p_kinds) as (
                   job_type text, workspace text, priority integer, max_retries integer, run_at timestamptz,
                   delay double precision, unique_key text, tags text[], created_by text, traceparent text,
                   concurrency_key text, needs text, max_age double precision)) with ordinality
               as k (job_type, workspace, priority, max_retries, run_at, delay, unique_key, tags, created_by, traceparent,
                     concurrency_key, needs, max_age, n)
          left join laneway.job_types t on t.name = k.job_type
         order by k.n);
    select format('jobs[%s].%s', coalesce(array_position(p_kind_of, p.kind), 1) - 1, p.rule) into v_problem
      from (select k.kind, case
                   when k.job_type is null or octet_length(k.job_type) not between 1 and 128 then 'job_type: 1 to 128 bytes'
                   when k.job_type collate "C" ~ '[\u0001-\u001f\u007f-\u009f]' then
                        'job_type: must be printable text without control characters'
                   when octet_length(k.workspace) not between 1 and 128 then 'workspace: 1 to 128 bytes'
                   when k.priority not between -32768 and 32767 then 'priority: -32768 to 32767'
                   when k.max_retries not between 0 and 32767 then 'max_retries: 0 to 32767'
                   when k.unique_key = '' then 'unique_key: must not be empty'
                   when k.needs not in ('analysis', 'approval', 'both') then 'needs: analysis, approval or both'
                   when k.created_by ~ '^\s|\s$' then 'created_by: must not begin or end with a blank'
                   when octet_length(k.created_by) not between 1 and 256 then 'created_by: 1 to 256 bytes'
                   when k.created_by is null and k.two_person then
                        'created_by: must be given, jobs of this type are approved by somebody else' end as rule
              from unnest(v_kinds) k) p
     where p.rule is not null order by array_position(p_kind_of, p.kind) limit 1;
    if v_problem is not null then
        raise exception using errcode = 'LW001', message = v_problem;
    end if;
    if exists (select from unnest(v_kinds) k where k.workspace <> all (v_narrow)) then
        raise insufficient_privilege using message =
            'row-level security: a workspace of the batch is outside of laneway.workspaces';
    end if;

    -- The number of the transaction comes before those of the jobs: floors rely on it.
    perform pg_current_xact_id();
    v_seqs := array(select nextval('laneway.jobs_seq_seq') from generate_series(1, v_count));
    v_holders := v_seqs;
    for i in 1 .. 100 loop
        exit when not exists (select from unnest(v_kinds) k where k.unique_key is not null);
        insert into laneway.job_keys (workspace, job_type, unique_key, seq)
        select m.workspace, m.job_type, m.unique_key, m.seq from (
            select distinct on (k.workspace collate "C", k.job_type collate "C", k.unique_key collate "C")
                   k.workspace, k.job_type, k.unique_key, g.seq
              from unnest(p_kind_of, v_seqs) as g (kind, seq) join unnest(v_kinds) k on k.kind = g.kind
             where k.unique_key is not null
             order by k.workspace collate "C", k.job_type collate "C", k.unique_key collate "C", g.seq) m
        on conflict do nothing;
        v_holders := array(
            select case when k.unique_key is null then g.seq else h.seq end
              from unnest(p_kind_of, v_seqs) with ordinality as g (kind, seq, n)
              join unnest(v_kinds) k on k.kind = g.kind
              left join laneway.job_keys h
                on h.workspace = k.workspace and h.job_type = k.job_type and h.unique_key = k.unique_key
             order by g.n);
        -- A holder that ended in between has left its key free again.
        exit when array_position(v_holders, null) is null;
        if i = 100 then
            raise exception 'a unique_key of the batch is held by a job that is not there';
        end if;
    end loop;

    insert into laneway.jobs (seq, id, job_type, workspace, payload, priority, max_retries, run_at, unique_key, tags,
                              created_at, created_by, traceparent, concurrency_key)
    select g.seq, g.id, k.job_type, k.workspace, g.payload, k.priority, k.max_retries, k.run_at, k.unique_key, k.tags,
           v_now, k.created_by, k.traceparent, k.concurrency_key
      from rows from (unnest(v_seqs), unnest(v_holders), unnest(p_ids), unnest(p_kind_of), jsonb_array_elements(p_payloads))
           as g (seq, holder, id, kind, payload)
      join unnest(v_kinds) k on k.kind = g.kind
     where g.holder = g.seq;
    insert into laneway.ready (seq, job_type, rank, ready_at)
    select g.seq, k.job_type, -k.priority, v_now
      from unnest(v_seqs, v_holders, p_kind_of) as g (seq, holder, kind) join unnest(v_kinds) k on k.kind = g.kind
     where g.holder = g.seq and not k.is_gated and (k.run_at > v_now) is not true;
    insert into laneway.delayed (seq, job_type, rank, run_at)
    select g.seq, k.job_type, -k.priority, k.run_at
      from unnest(v_seqs, v_holders, p_kind_of) as g (seq, holder, kind) join unnest(v_kinds) k on k.kind = g.kind
     where g.holder = g.seq and not k.is_gated and k.run_at > v_now;
    for v_odd in
        select g.n, g.seq, k.needs, k.max_age, k.is_gated
          from unnest(v_seqs, v_holders, p_kind_of) with ordinality as g (seq, holder, kind, n)
          join unnest(v_kinds) k on k.kind = g.kind
         where g.holder = g.seq and (k.is_gated or k.max_age is not null)
         order by g.n
    loop
        if v_odd.is_gated then
            v_statuses[v_odd.n] := laneway.place(v_odd.seq, v_now, v_odd.needs);
        end if;
        if v_odd.max_age is not null then
            insert into laneway.deadlines (seq, at) values (v_odd.seq, v_now + make_interval(secs => v_odd.max_age));
        end if;
    end loop;
    if exists (select from laneway.watches) then
        perform laneway.emit(array(select h from unnest(v_seqs, v_holders) as u (s, h) where u.s = u.h), 'submitted');
    end if;
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
