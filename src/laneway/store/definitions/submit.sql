-- The rule that a payload breaks, as in domain/payload.py, or null. The size is that of the text, which a claim
-- transfers: 22 stored bytes may be 131,072 digits. Each part is linear, and none reads more than 65 levels; a
-- short text has neither 65 levels nor 309 digits.
create or replace function laneway.payload_problem(p_payload jsonb, p_max_bytes integer) returns text
language plpgsql immutable as $$
declare
    v_text  text := p_payload::text;
    v_bytes integer := octet_length(v_text);
begin
    if v_bytes > p_max_bytes then
        return format('at most %s bytes', p_max_bytes);
    end if;
    if v_bytes >= 130 and jsonb_path_exists(p_payload,
        'strict $.**{64 to last} ? (@.type() == "array" || @.type() == "object")') then
        return 'is nested deeper than 64 levels';
    end if;
    if v_bytes >= 309 and v_text ~ '[0-9]{155}[0-9]{154}' and jsonb_path_exists(p_payload,
        'strict $.** ? (@.type() == "number" && (@ >= 1e308 || @ <= -1e308))') then
        return 'numbers may have at most 308 digits';
    end if;
    return null;
end $$;

-- The rule that the settings of a new job break, with the name of the field, or null; does not check the payload.
-- Shared by laneway.submit and laneway.submit_batch. p_two_person: a second person approves jobs of the type.
create or replace function laneway.submit_problem(
    p_job_type text, p_workspace text, p_priority integer, p_max_retries integer, p_run_at timestamptz, p_delay interval,
    p_unique_key text, p_tags text[], p_created_by text, p_traceparent text, p_concurrency_key text, p_needs text,
    p_max_age double precision, p_two_person boolean, p_max_key_bytes integer, p_now timestamptz)
returns text language plpgsql immutable as $$
begin
    if p_job_type is null or octet_length(p_job_type) not between 1 and 128 then
        return 'job_type: 1 to 128 bytes';
    end if;
    -- As in laneway.check_job_types and domain/lane.py.
    if p_job_type collate "C" !~ '^[!-~]+$' then
        if p_job_type collate "C" ~ ('[\u0001-\u001f\u007f-\u00a0\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u1680\u180e\u2000-\u200f'
            '\u2028-\u202f\u205f-\u206f\u3000\ue000-\uf8ff\ufeff\ufff9-\ufffb\ufffe\uffff\U000110bd\U000110cd'
            '\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f\U000f0000-\U0010ffff]') then
            return 'job_type: must be printable text without control characters';
        elsif p_job_type like ' %' or p_job_type like '% ' then
            return 'job_type: must not begin or end with a space';
        end if;
    end if;
    if octet_length(p_unique_key) not between 1 and p_max_key_bytes then
        return format('unique_key: 1 to %s bytes', p_max_key_bytes);
    end if;
    if octet_length(p_concurrency_key) not between 1 and p_max_key_bytes then
        return format('concurrency_key: 1 to %s bytes', p_max_key_bytes);
    end if;
    if p_delay not between interval '0' and interval '36600 days' then
        return 'delay: 0 to 100 years';
    end if;
    if p_run_at is not null and p_delay is not null then
        return 'delay: give delay or run_at, not both';
    end if;
    if coalesce(p_run_at, p_now + p_delay) not between p_now - interval '100 years' and p_now + interval '101 years' then
        return 'run_at: within 100 years of now';
    end if;
    if p_workspace is null or octet_length(p_workspace) not between 1 and 128 then
        return 'workspace: 1 to 128 bytes';
    end if;
    if p_needs not in ('analysis', 'approval', 'both') then
        return 'needs: analysis, approval or both';
    end if;
    if not (p_max_age > 0 and p_max_age <= 31622400) then
        return 'max_age: more than 0 seconds and at most a year';
    end if;
    if p_tags is not null then
        if cardinality(p_tags) > 64 then
            return 'tags: at most 64 tags';
        end if;
        if exists (select from unnest(p_tags) t where t is null or octet_length(t) not between 1 and 128) then
            return 'tags: 1 to 128 bytes each';
        end if;
    end if;
    if octet_length(p_created_by) not between 1 and 256 then
        return 'created_by: 1 to 256 bytes';
    end if;
    if octet_length(p_traceparent) not between 1 and 256 then
        return 'traceparent: 1 to 256 bytes';
    end if;
    if p_created_by ~ '^\s|\s$' then
        return 'created_by: must not begin or end with a blank';
    end if;
    if p_priority not between -32768 and 32767 then
        return 'priority: -32768 to 32767';
    end if;
    if p_max_retries not between 0 and 32767 then
        return 'max_retries: 0 to 32767';
    end if;
    if p_two_person and p_created_by is null then
        return 'created_by: must be given, because another person approves jobs of this type';
    end if;
    return null;
end $$;

-- The rule that the unique_for or unique_by of a submit breaks, or null. p_arguments: the published JSON Schema.
create or replace function laneway.unique_problem(
    p_job_type text, p_unique_for double precision, p_unique_by text[], p_arguments jsonb)
returns text language plpgsql immutable as $$
declare
    v_name text;
begin
    if not (p_unique_for >= 0 and p_unique_for <= 31622400) then
        return 'unique_for: 0 seconds to a year';
    end if;
    if cardinality(p_unique_by) not between 1 and 64 or array_position(p_unique_by, null) is not null then
        return 'unique_by: 1 to 64 names of arguments';
    end if;
    if p_arguments -> 'additionalProperties' = 'false' then
        select n into v_name from unnest(p_unique_by) n where not p_arguments -> 'properties' ? n limit 1;
        if found then
            return format('unique_by: %s is not an argument of %s', left(v_name, 60), p_job_type);
        end if;
    end if;
    return null;
end $$;

-- The unique key of a job: a digest of the given arguments (null: all), with the published defaults of those that the
-- payload leaves out. jsonb orders the keys of objects, but keeps the zeros at the end of 1.0 and 1.50: they are cut here,
-- outside of strings, so that equal numbers have one key.
create or replace function laneway.unique_key_of(p_payload jsonb, p_unique_by text[], p_arguments jsonb)
returns text language sql immutable as $$
    select 'args:' || encode(sha256(convert_to(
               case when c.args ~ '[0-9]\.[0-9]*0(?![0-9])'
                    then regexp_replace(c.args, '("(?:[^"\\]|\\.)*")|\.0+(?![0-9])|(\.[0-9]*[1-9])0+(?![0-9])', '\1\2', 'g')
                    else c.args end, 'UTF8')), 'hex')
      from (select (case when jsonb_typeof(p_payload) <> 'object' then p_payload
                         when p_unique_by is null then d.defaults || p_payload
                         else coalesce((select jsonb_object_agg(n, (d.defaults || p_payload) -> n) from unnest(p_unique_by) n
                                         where (d.defaults || p_payload) ? n), '{}') end)::text as args
              from (select coalesce(jsonb_object_agg(p.key, p.value -> 'default')
                                        filter (where jsonb_typeof(p.value) = 'object' and p.value ? 'default'), '{}') as defaults
                      from jsonb_each(case when jsonb_typeof(p_arguments -> 'properties') = 'object'
                                           then p_arguments -> 'properties' else '{}' end) p) d
            offset 0) c
$$;

-- The public function for triggers and other languages: submits one job in the caller's transaction.
--   select * from laneway.submit('ingestion', '{"path": "a.pdf"}', priority => 10, wake => true);
-- A second submit of a live unique_key returns the first job with duplicate = true. unique_for: also after the first
-- job has ended, until so long after its submit. unique_by: the arguments that form the key if unique_key is
-- not given; with neither, all arguments form it. Null: as the type publishes. unique_for => '0': not unique.
-- after: the job waits until these jobs have completed. after_failure: if one of them fails or is cancelled, `cancel` (the
-- default), `run`, or `hold` until it is retried and completes. flow: the flow that the job joins.
-- needs (analysis, approval or both) and max_age (seconds): from a caller that has the handler, in case it is not
-- published yet; a published type has its own max_age.
-- With its owner's rights: a role that may submit cannot write the queue or an approval directly.
create or replace function laneway.submit(
    job_type text, payload jsonb default '{}', priority integer default null,
    run_at timestamptz default null, delay interval default null, unique_key text default null,
    workspace text default 'default', tags text[] default null, max_retries integer default null,
    created_by text default null, wake boolean default false, id uuid default null, traceparent text default null,
    max_payload_bytes integer default 1048576, max_key_bytes integer default 512,
    concurrency_key text default null, needs text default null, max_age double precision default null,
    unique_for interval default null, unique_by text[] default null,
    after uuid[] default null, after_failure text default null, flow uuid default null,
    out job_id uuid, out status text, out duplicate boolean)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
    v_seq      bigint;
    v_problem  text;
    v_type     record;
    v_now      timestamptz := clock_timestamp();
    v_due      timestamptz;
    v_priority integer;
    v_key      text := submit.unique_key;
    v_for      double precision := extract(epoch from submit.unique_for);
    v_flow     bigint;
    v_link     record;
begin
    if submit.payload is null then
        raise exception using errcode = 'LW001', message = 'payload: may not be null';
    end if;
    -- Otherwise any program that submits could have a message signed. Who may read secrets can sign without it.
    if submit.job_type = 'laneway.webhook' and not has_table_privilege(
           coalesce(nullif(current_setting('role'), 'none'), session_user::text), 'laneway.webhooks', 'select') then
        raise exception using errcode = 'LW001', message = 'job_type: only the end of a job submits deliveries';
    end if;
    -- 2147483647: the caller has checked the payload against its settings.
    if submit.max_payload_bytes < 2147483647 then
        v_problem := laneway.payload_problem(submit.payload, submit.max_payload_bytes);
        if v_problem is not null then
            raise exception using errcode = 'LW001', message = 'payload: ' || v_problem;
        end if;
    end if;
    select t.priority, t.max_retries, t.approval, t.has_analysis, t.two_person, t.max_age_s, t.unique_for_s, t.unique_by,
           case when coalesce(v_for, t.unique_for_s) > 0 or submit.unique_by is not null
                  or t.unique_by is not null then t.arguments end as arguments
      into v_type
      from laneway.job_types t where t.name = submit.job_type;
    v_priority := coalesce(submit.priority, v_type.priority, 0);
    v_problem := laneway.submit_problem(
        submit.job_type, submit.workspace, v_priority, submit.max_retries, submit.run_at, submit.delay, submit.unique_key,
        submit.tags, submit.created_by, submit.traceparent, submit.concurrency_key, submit.needs, submit.max_age,
        v_type.two_person, submit.max_key_bytes, v_now);
    v_problem := coalesce(v_problem, laneway.unique_problem(
        submit.job_type, v_for, submit.unique_by, v_type.arguments));
    if v_problem is not null then
        raise exception using errcode = 'LW001', message = v_problem;
    end if;
    v_due := coalesce(submit.run_at, v_now + submit.delay);
    v_for := coalesce(v_for, v_type.unique_for_s);
    if v_key is null and (v_for > 0 or (v_for is null and coalesce(submit.unique_by, v_type.unique_by) is not null)) then
        v_key := laneway.unique_key_of(
            submit.payload, coalesce(submit.unique_by, v_type.unique_by), v_type.arguments);
    end if;
    -- The policy of `laneway db grants` does not restrict the owner, so check the workspaces here.
    if nullif(current_setting('laneway.workspaces', true), '') is not null
       and submit.workspace <> all (current_setting('laneway.workspaces')::text[]) then
        raise insufficient_privilege using message = format(
            'row-level security: the workspace %s is outside of laneway.workspaces', submit.workspace);
    end if;

    if submit.flow is not null then
        v_flow := laneway.flow_to_join(submit.flow, array[submit.workspace]);
    end if;

    -- A duplicate within a period locks nothing, so that duplicates neither wait for each other nor deadlock.
    if v_key is not null and v_for > 0 then
        select h.id, h.status, true into job_id, status, duplicate
          from laneway.unique_periods u
         cross join lateral (select v.id, v.status from laneway.jobs_view v where v.seq = u.seq offset 0) h
         where u.workspace = submit.workspace and u.job_type = submit.job_type and u.unique_key = v_key and u.until > v_now;
        if found then return; end if;
    end if;

    -- Assign the transaction id before the sequence number: floors rely on it.
    perform pg_current_xact_id();
    v_seq := nextval('laneway.jobs_seq_seq');
    if v_key is not null then
        for i in 1 .. 100 loop
            insert into laneway.job_keys as k values (submit.workspace, submit.job_type, v_key, v_seq)
            on conflict do nothing;
            if found then
                exit when (v_for > 0) is not true;
                insert into laneway.unique_periods as u (workspace, job_type, unique_key, seq, until)
                values (submit.workspace, submit.job_type, v_key, v_seq, v_now + make_interval(secs => v_for))
                on conflict on constraint unique_periods_pkey
                do update set seq = excluded.seq, until = excluded.until where u.until <= v_now;
                exit when found;
                delete from laneway.job_keys k
                 where k.workspace = submit.workspace and k.job_type = submit.job_type and k.unique_key = v_key;
                select h.id, h.status, true into job_id, status, duplicate
                  from laneway.unique_periods u
                 cross join lateral (select v.id, v.status from laneway.jobs_view v where v.seq = u.seq offset 0) h
                 where u.workspace = submit.workspace and u.job_type = submit.job_type and u.unique_key = v_key;
            else
                select h.id, h.status, true into job_id, status, duplicate
                  from laneway.job_keys k
                 cross join lateral (select v.id, v.status from laneway.jobs_view v where v.seq = k.seq offset 0) h
                 where k.workspace = submit.workspace and k.job_type = submit.job_type and k.unique_key = v_key;
            end if;
            if found then return; end if;
            if i = 100 then
                raise exception 'unique_key % belongs to a job that does not exist', v_key;
            end if;
        end loop;
    end if;

    job_id := coalesce(submit.id, gen_random_uuid());
    duplicate := false;
    insert into laneway.jobs (seq, id, job_type, workspace, payload, priority, max_retries, run_at, unique_key, tags,
                              created_at, created_by, traceparent, concurrency_key, flow)
    values (v_seq, job_id, submit.job_type, submit.workspace, submit.payload, v_priority,
            coalesce(submit.max_retries, v_type.max_retries, 3), v_due, v_key, submit.tags,
            v_now, submit.created_by, submit.traceparent, submit.concurrency_key, v_flow);
    status := 'approved';
    if submit.after is not null or submit.after_failure is not null or v_flow is not null then
        select l.* into v_link
          from laneway.link_jobs(array[v_seq], array[job_id], array[v_seq], array[submit.workspace], jsonb_build_array(
                   jsonb_build_object('after', to_jsonb(submit.after), 'after_failure', submit.after_failure)),
                   v_flow, false, v_now) l;
        if found then
            status := case when v_link.cause is null then 'waiting' else 'cancelled' end;
        end if;
    end if;
    if status <> 'approved' then
        if submit.needs is not null then
            insert into laneway.approvals (seq, asked) values (v_seq, submit.needs);
        end if;
    elsif v_type.has_analysis or v_type.approval <> 'never' or submit.needs is not null then
        status := laneway.start_approval(v_seq, v_now, submit.needs);
    elsif v_due > v_now then
        insert into laneway.delayed (seq, job_type, rank, run_at) values (v_seq, submit.job_type, -v_priority, v_due);
    else
        insert into laneway.ready (seq, job_type, rank, ready_at) values (v_seq, submit.job_type, -v_priority, v_now);
    end if;
    if coalesce(v_type.max_age_s, submit.max_age) is not null then
        insert into laneway.deadlines (seq, at)
        values (v_seq, v_now + make_interval(secs => coalesce(v_type.max_age_s, submit.max_age)));
    end if;
    if exists (select from laneway.watches) then
        perform laneway.emit(array[v_seq], 'submitted');
    end if;
    if status = 'cancelled' then
        perform laneway.end_unstarted(v_seq, v_link.cause, v_now);
    end if;
    if submit.wake and status in ('approved', 'pending') then
        perform pg_notify('laneway', 'wake ' || case when status = 'pending' then laneway.analysis_of(submit.job_type)
                                                else submit.job_type end);
    end if;
end $$;
