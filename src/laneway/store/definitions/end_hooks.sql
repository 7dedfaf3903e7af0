-- End hooks: the end of a job submits a job for each published hook and each enabled webhook that it matches. Both are one
-- transaction, so a crash neither loses nor doubles it.

-- A payload or result as part of an ended job: null if it is larger than p_most bytes, or so deep that the job which
-- contains it would break the limit of payloads.
create or replace function laneway.value_for_hook(p_value jsonb, p_most integer) returns jsonb
language sql immutable as $$
    select case when octet_length(p_value::text) <= p_most
                 and not (octet_length(p_value::text) >= 120 and jsonb_path_exists(p_value,
                     'strict $.**{60 to last} ? (@.type() == "array" || @.type() == "object")')) then p_value end
$$;

-- An ended job as the input of a hook; null if it has not ended. Of its error only what all readers of the job may see.
create or replace function laneway.ended_job(p_seq bigint) returns jsonb
language sql stable as $$
    select jsonb_build_object(
               'id', j.id, 'job_type', o.job_type, 'status', o.status, 'workspace', o.workspace, 'lane', o.lane,
               'priority', o.priority, 'attempt', o.attempt, 'retries', o.retries, 'max_retries', j.max_retries,
               'tags', to_jsonb(coalesce(j.tags, '{}')), 'flow', (select f.id from laneway.flows f where f.seq = j.flow),
               'created_at', j.created_at, 'created_by', j.created_by, 'started_at', o.started_at,
               'finished_at', o.finished_at, 'cancel_reason', left(o.cancel_reason, 2000), 'cancelled_by', o.cancel_by,
               'error', case when o.error is not null then jsonb_build_object(
                   'type', left(o.error ->> 'type', 200),
                   'message', case when o.error -> 'public' = 'true' then left(o.error ->> 'message', 2000) end) end,
               'payload', v.payload, 'result', v.result,
               'omitted', to_jsonb(array_remove(array[
                   case when v.payload is null then 'payload' end,
                   case when v.result is null and o.result is not null then 'result' end], null)))
      from laneway.outcome o join laneway.jobs j on j.seq = o.seq
     cross join lateral (select laneway.value_for_hook(j.payload, 32768) as payload,
                                laneway.value_for_hook(o.result, 32768) as result offset 0) v
     where o.seq = p_seq
$$;

-- Submits jobs of end hooks. Returns the job types to wake. With the usual methods of plans, because laneway.store_batch
-- keeps its plans for later calls of the session; and for any workspace: the caller may end jobs of all.
create or replace function laneway.submit_hook_jobs(p_payloads jsonb, p_kinds jsonb) returns setof text
language plpgsql volatile
set plan_cache_mode = auto
set enable_seqscan = on
set enable_bitmapscan = on
set enable_nestloop = on
set enable_hashjoin = on
set enable_mergejoin = on
as $$
declare
    v_count  integer := jsonb_array_length(p_payloads);
    v_narrow text := nullif(current_setting('laneway.workspaces', true), '');
begin
    -- Not a setting of this function: only a superuser may create one with a parameter of our own.
    if v_narrow is not null then perform set_config('laneway.workspaces', '', true); end if;
    -- 2147483647: laneway.ended_job has bounded the payloads.
    return query
    select distinct case s.status when 'pending' then laneway.analysis_of(s.kind ->> 'job_type') else s.kind ->> 'job_type' end
      from rows from (
               laneway.store_batch(array(select gen_random_uuid() from generate_series(1, v_count)), p_payloads,
                                   array(select g from generate_series(0, v_count - 1) g), p_kinds, 2147483647, 512, null,
                                   null),
               jsonb_array_elements(p_kinds)) as s (job_id, status, duplicate, kind);
    if v_narrow is not null then perform set_config('laneway.workspaces', v_narrow, true); end if;
end $$;

-- Whether jobs of a type are about the ends of other jobs: of an end hook, or deliveries to webhooks.
create or replace function laneway.is_hook_type(p_job_type text) returns boolean language sql stable as $$
    select p_job_type = 'laneway.webhook' or exists (select from laneway.end_hooks h where h.name = p_job_type)
$$;

-- Submits the jobs of the hooks that the ends of these jobs match. Ignores jobs that have not ended. Returns the job types
-- to wake. Each function that writes `outcome` calls it once for each end, in the same transaction.
-- The end of a hook's own job, or of a delivery to a webhook, matches only hooks that name its type, and not if that job was
-- about such a job itself: hooks do not run in circles.
create or replace function laneway.submit_end_hooks(p_seqs bigint[]) returns setof text
language plpgsql volatile
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = on
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    -- A jsonb array holds 256 MB, a job of a hook at most 80 kB.
    c_most     constant integer := 500;
    v_hooks    text[];
    -- The webhook of each hook, if it is one.
    v_webhooks text[];
    -- The ids of these webhooks: a later one may have the same name.
    v_ids      uuid[];
    v_seqs     bigint[];
    v_kinds    jsonb;
    v_inputs   jsonb;
begin
    select array_agg(m.name), array_agg(m.webhook), array_agg(m.id), array_agg(m.seq) into v_hooks, v_webhooks, v_ids, v_seqs
      from (select h.name, h.webhook, w.id, o.seq from unnest(p_seqs) s
             cross join lateral (select x.seq, x.job_type, x.status, x.workspace, x.lane from laneway.outcome x
                                  where x.seq = s offset 0) o
             cross join lateral (select x.name, x.webhook, x.job_types, x.lanes, x.tags from laneway.end_hooks x
                                  where (x.job_types is null or o.job_type = any (x.job_types)) and o.status = any (x.statuses)
                                    and (x.workspaces is null or o.workspace = any (x.workspaces)) offset 0) h
              left join laneway.webhooks w on w.name = h.webhook
             where (not laneway.is_hook_type(o.job_type)
                    or (h.job_types is not null and not exists (
                        select from laneway.jobs j
                         where j.seq = o.seq and laneway.is_hook_type(j.payload #>> '{job,job_type}'))))
               -- A job that never ran has no lane yet.
               and (h.lanes is null or coalesce(o.lane, laneway.lane_of(o.job_type)) = any (h.lanes))
               and (h.tags is null or exists (select from laneway.jobs j where j.seq = o.seq and j.tags && h.tags))) m;
    if v_hooks is null then return; end if;
    for i in 0 .. (cardinality(v_hooks) - 1) / c_most loop
        select jsonb_agg(jsonb_strip_nulls(jsonb_build_object('webhook', m.webhook))
                         || jsonb_build_object('job', laneway.ended_job(m.seq)) order by m.n),
               jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
                   'job_type', case when m.webhook is null then m.hook else 'laneway.webhook' end,
                   'workspace', j.workspace, 'traceparent', j.traceparent, 'created_by', 'laneway',
                   'tags', case when m.webhook is not null
                                then jsonb_build_array('webhook:' || m.webhook, 'webhook_id:' || m.id) end,
                   'max_retries', (select w.max_retries from laneway.webhooks w where w.name = m.webhook),
                   -- A unique key would make the end wait for other transactions.
                   'unique_for', 0)) order by m.n)
          into v_inputs, v_kinds
          from unnest(v_hooks[i * c_most + 1 : (i + 1) * c_most], v_webhooks[i * c_most + 1 : (i + 1) * c_most],
                      v_ids[i * c_most + 1 : (i + 1) * c_most], v_seqs[i * c_most + 1 : (i + 1) * c_most])
               with ordinality as m (hook, webhook, id, seq, n)
         cross join lateral (select x.workspace, x.traceparent from laneway.jobs x where x.seq = m.seq offset 0) j;
        return query select * from laneway.submit_hook_jobs(v_inputs, v_kinds);
    end loop;
end $$;

-- Publishes the end hooks of applications; the newest publication of a name counts. p_hooks: objects with the columns of
-- laneway.end_hooks. Deletes the hooks of these applications that are not given, unless a live worker still handles
-- them: it is of a newer or an older version. Returns hooks that another application published in another way before.
create or replace function laneway.publish_end_hooks(p_hooks jsonb, p_applications text[])
returns table (name text, application text)
language plpgsql volatile as $$
#variable_conflict use_column
begin
    perform pg_advisory_xact_lock(5577006791947779411);
    delete from laneway.end_hooks h
     where h.application = any (p_applications)
       and h.name not in (select g ->> 'name' from jsonb_array_elements(p_hooks) g)
       and not exists (select from laneway.workers w
                        where w.stopped_at is null and w.seen_at > clock_timestamp() - interval '45 seconds'
                          and h.name = any (w.job_types));
    return query
    with given as materialized (
        select * from jsonb_to_recordset(p_hooks) as g (
            name text, application text, job_types text[], statuses text[], workspaces text[])
    ), others as materialized (
        select h.name, h.application from laneway.end_hooks h join given g on g.name = h.name
         where h.application <> g.application
           and (h.job_types, h.statuses, h.workspaces) is distinct from (g.job_types, g.statuses, g.workspaces)
    ), saved as (
        insert into laneway.end_hooks as h (name, application, job_types, statuses, workspaces)
        select g.name, g.application, g.job_types, g.statuses, g.workspaces from given g
        on conflict (name) do update
           set (application, job_types, statuses, workspaces, published_at)
             = (excluded.application, excluded.job_types, excluded.statuses, excluded.workspaces, excluded.published_at)
         where (h.application, h.job_types, h.statuses, h.workspaces)
               is distinct from (excluded.application, excluded.job_types, excluded.statuses, excluded.workspaces)
    )
    select o.name, o.application from others o order by o.name;
end $$;
