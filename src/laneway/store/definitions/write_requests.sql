-- Stores the jobs of several requests and an audit entry for each, all or none; returns the stored jobs in the order
-- given, and counts them against the quota of their principal: a principal at its bound is refused before anything is
-- written. None has a unique_key: waiting for the holder of one would delay the others. For the same reason it stores no
-- request with defers_unique whose type has become unique: the caller submits that separately. Earlier servers do not send
-- it. One statement, so that it costs one round trip.
create or replace function laneway.submit_requests(p_requests jsonb)
returns setof laneway.jobs_as_text
language plpgsql volatile
as $$
declare
    v_ids uuid[];
begin
    perform laneway.check_quota(g.principal, g.jobs, g.bytes, g.job_types, g.max_queued, g.max_bytes, g.max_types)
       from (select r.principal, count(*) as jobs, sum(r.bytes)::bigint as bytes, array_agg(r.job_type) as job_types,
                    min(r.max_queued) as max_queued, min(r.max_bytes) as max_bytes, min(r.max_types) as max_types
               from jsonb_to_recordset(p_requests) as r (
                     principal uuid, job_type text, bytes bigint, max_queued bigint, max_bytes bigint, max_types bigint,
                     defers_unique boolean)
              where coalesce(r.max_queued, r.max_bytes, r.max_types) is not null
                and not exists (select from laneway.job_types t where r.defers_unique and t.name = r.job_type
                                   and (t.unique_for_s is not null or t.unique_by is not null))
              group by r.principal) g;
    with made as materialized (
        select r.actor, r.principal, r.door, r.request, r.address, r.job_type, r.workspace, s.job_id, s.status
          -- offset 0: decides before submit stores anything.
          from (select x.* from jsonb_to_recordset(p_requests) as x (
                    id uuid, job_type text, payload jsonb, priority integer, run_at timestamptz, delay double precision,
                    concurrency_key text, workspace text, tags text[], max_retries integer, created_by text,
                    traceparent text, needs text, max_age double precision,
                    actor text, principal uuid, door text, request text, address text, defers_unique boolean)
                 where not exists (select from laneway.job_types t where x.defers_unique and t.name = x.job_type
                                      and (t.unique_for_s is not null or t.unique_by is not null))
                offset 0) r
         cross join lateral laneway.submit(
                job_type => r.job_type, payload => r.payload, priority => r.priority, run_at => r.run_at,
                delay => make_interval(secs => r.delay), workspace => r.workspace, tags => r.tags,
                max_retries => r.max_retries, created_by => r.created_by, id => r.id, traceparent => r.traceparent,
                concurrency_key => r.concurrency_key, needs => r.needs, max_age => r.max_age, unique_for => '0',
                max_payload_bytes => 2147483647, max_key_bytes => 2147483647) s
    ), acts as (
        insert into laneway.audit (actor, principal_id, door, action, kind, name, workspace, outcome, after, request_id, address)
        select m.actor, m.principal, m.door, 'job.submitted', 'job', m.job_id::text, m.workspace, 'done',
               jsonb_build_object('job_type', m.job_type, 'status', m.status), m.request, m.address
          from made m
    )
    select array_agg(m.job_id) into v_ids from made m;
    -- In the order of principals, as every such transaction: each keeps a counter locked until its end.
    perform laneway.charge_quota(g.principal, g.ids, g.bytes, g.max_queued, g.max_bytes, g.max_types)
       from (select r.principal, array_agg(r.id) as ids, array_agg(r.bytes) as bytes, min(r.max_queued) as max_queued,
                    min(r.max_bytes) as max_bytes, min(r.max_types) as max_types
               from jsonb_to_recordset(p_requests) as r (
                     id uuid, principal uuid, bytes bigint, max_queued bigint, max_bytes bigint, max_types bigint)
              where coalesce(r.max_queued, r.max_bytes, r.max_types) is not null
              group by r.principal order by r.principal offset 0) g;
    return query select * from laneway.jobs_by_id(v_ids);
end $$;
