-- Flows as a whole; flow_changes has their cancels and retries. Functions with their owner's rights restrict themselves to
-- laneway.workspaces, as laneway.submit does.

-- Creates an empty flow. With its owner's rights, like laneway.submit.
create or replace function laneway.create_flow(
    p_id uuid, p_name text, p_workspace text default 'default', p_tags text[] default null, p_created_by text default null)
returns bigint language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_problem text;
    v_seq     bigint;
begin
    v_problem := case
        when p_name is null or octet_length(p_name) not between 1 and 128 then 'name: 1 to 128 bytes'
        when p_workspace is null or octet_length(p_workspace) not between 1 and 128 then 'workspace: 1 to 128 bytes'
        when cardinality(p_tags) > 64 then 'tags: at most 64 tags'
        when exists (select from unnest(p_tags) t where t is null or octet_length(t) not between 1 and 128)
        then 'tags: 1 to 128 bytes each'
        when octet_length(p_created_by) not between 1 and 256 then 'created_by: 1 to 256 bytes' end;
    if v_problem is not null then
        raise exception using errcode = 'LW001', message = v_problem;
    end if;
    if p_workspace <> all (nullif(current_setting('laneway.workspaces', true), '')::text[]) then
        raise insufficient_privilege using message = format(
            'row-level security: the workspace %s is outside of laneway.workspaces', p_workspace);
    end if;
    insert into laneway.flows (id, name, workspace, tags, created_by)
    values (coalesce(p_id, gen_random_uuid()), p_name, p_workspace, p_tags, p_created_by)
    on conflict (id) do nothing returning seq into v_seq;
    if v_seq is null then
        raise exception using errcode = 'LW001', message = format(
            'id: a flow has the id %s already; give each flow another id', p_id);
    end if;
    return v_seq;
end $$;

-- The number of a flow in reach; null if there is none.
create or replace function laneway.flow_in_reach(p_id uuid) returns bigint language sql stable as $$
    select f.seq from laneway.flows f
     where f.id = p_id
       and (f.workspace = any (nullif(current_setting('laneway.workspaces', true), '')::text[])) is not false
$$;

-- The sums of a flow with the tallies that are not folded yet, and its status: running while one of its jobs has not ended,
-- else failed if one failed, cancelled if one was cancelled, else completed. One row. It returns a set and has no settings, so
-- that it becomes a part of the caller's query: a list reads two thousand flows.
create or replace function laneway.flow_totals(
    p_seq bigint, p_jobs integer, p_completed integer, p_failed integer, p_cancelled integer, p_ended_at timestamptz)
returns table (jobs integer, completed integer, failed integer, cancelled integer, ended_at timestamptz, status text)
language sql stable as $$
    select s.jobs, s.completed, s.failed, s.cancelled,
           case when s.jobs <= s.completed + s.failed + s.cancelled then s.ended_at end,
           case when s.jobs > s.completed + s.failed + s.cancelled then 'running' when s.failed > 0 then 'failed'
                when s.cancelled > 0 then 'cancelled' else 'completed' end
      from (select (p_jobs + coalesce(sum(x.jobs), 0))::integer as jobs,
                   (p_completed + coalesce(sum(x.completed), 0))::integer as completed,
                   (p_failed + coalesce(sum(x.failed), 0))::integer as failed,
                   (p_cancelled + coalesce(sum(x.cancelled), 0))::integer as cancelled,
                   greatest(p_ended_at, max(x.ended_at)) as ended_at
              from laneway.flow_tallies x where x.flow = p_seq) s
$$;

create or replace function laneway.flow_sums(
    p_seq bigint, out jobs integer, out completed integer, out failed integer, out cancelled integer,
    out ended_at timestamptz, out status text)
language sql stable as $$
    select s.* from laneway.flows f
     cross join lateral laneway.flow_totals(f.seq, f.jobs, f.completed, f.failed, f.cancelled, f.ended_at) s
     where f.seq = p_seq
$$;

-- Flows, newest first, at most p_limit before p_before. Reads at most p_look; a search that stops before the page is full
-- ends with a row without an id, whose seq is where the next one continues. Null does not filter. p_within as in
-- laneway.search_jobs; a term with lanes reaches no flow.
create or replace function laneway.list_flows(
    p_before bigint, p_limit integer, p_id uuid default null, p_workspace text default null, p_name text default null,
    p_status text default null, p_tag text default null, p_within jsonb default null, p_look integer default 2000)
returns table (seq bigint, id uuid, name text, workspace text, tags text[], status text, created_at timestamptz,
               created_by text, ended_at timestamptz, jobs integer, completed integer, failed integer, cancelled integer)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_custom_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_sort = off
as $$
#variable_conflict use_column
declare
    v_narrow text[] := nullif(current_setting('laneway.workspaces', true), '')::text[];
    v_before bigint := coalesce(p_before, 9223372036854775807);
    v_room   integer := p_limit;
    v_looked integer := 0;
    v_step   integer := least(greatest(p_limit, 50), p_look);
    v_found  integer;
    v_read   integer;
    v_last   bigint;
begin
    loop
        return query
        select f.seq, f.id, f.name, f.workspace, coalesce(f.tags, '{}'), s.status, f.created_at, f.created_by,
               -- A flow without jobs, because all were duplicates, has ended at once.
               case when s.jobs = 0 then f.created_at else s.ended_at end,
               s.jobs, s.completed, s.failed, s.cancelled
          from (select x.* from laneway.flows x
                 where x.seq < v_before and (p_workspace is null or x.workspace = p_workspace)
                   and (p_id is null or x.id = p_id)
                 order by x.seq desc limit v_step) f
         cross join lateral laneway.flow_totals(f.seq, f.jobs, f.completed, f.failed, f.cancelled, f.ended_at) s
         where (p_name is null or f.name = p_name) and (p_tag is null or p_tag = any (f.tags))
           and (p_status is null or s.status = p_status) and (v_narrow is null or f.workspace = any (v_narrow))
           and (p_within is null or exists (
                select from jsonb_to_recordset(p_within) as t (owner text, workspace text, lanes text[])
                 where (t.owner is null or t.owner = f.created_by) and (t.workspace is null or t.workspace = f.workspace)
                   and t.lanes is null))
         order by f.seq desc limit v_room;
        get diagnostics v_found = row_count;
        v_room := v_room - v_found;
        exit when v_room <= 0;
        select count(*), min(x.seq) into v_read, v_last
          from (select y.seq from laneway.flows y
                 where y.seq < v_before and (p_workspace is null or y.workspace = p_workspace)
                   and (p_id is null or y.id = p_id)
                 order by y.seq desc limit v_step) x;
        exit when v_read < v_step;
        v_before := v_last;
        v_looked := v_looked + v_read;
        if v_looked >= p_look then
            seq := v_before; id := null; name := null; workspace := null; tags := null; status := null;
            created_at := null; created_by := null; ended_at := null; jobs := null; completed := null; failed := null;
            cancelled := null;
            return next;
            exit;
        end if;
    end loop;
end $$;

-- The jobs of a flow with their states and edges, in the order of their submit: at most p_limit after p_after. A page ends
-- with the job that brings its parents to 10,000, and no job has more of them, so that a read stays short; `is_cut`: there may
-- be more jobs after this one.
create or replace function laneway.flow_states(p_id uuid, p_after bigint default 0, p_limit integer default 1000)
returns table (seq bigint, id uuid, name text, job_type text, status text, parents uuid[], after_failure text, owner uuid,
               created_at timestamptz, started_at timestamptz, finished_at timestamptz, attempt integer, priority integer,
               error_type text, lane text, created_by text, is_cut boolean)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    v_flow bigint := laneway.flow_in_reach(p_id);
begin
    return query
    select l.seq, v.id, l.name, v.job_type, v.status,
           array(select b.id from unnest(l.parents[:10000]) with ordinality as p (seq, n)
                  cross join lateral (select x.id from laneway.jobs x where x.seq = p.seq offset 0) b order by p.n),
           case when l.parents is not null then l.after_failure end,
           (select b.id from laneway.jobs b where b.seq = l.owner),
           v.created_at, v.started_at, v.finished_at, v.attempt, v.priority, left(v.error ->> 'type', 200), v.lane, v.created_by,
           l.edges >= 10000
      from (select x.*, coalesce(cardinality(x.parents), 0) as own,
                   sum(coalesce(cardinality(x.parents), 0)) over (order by x.seq) as edges
              from (select y.* from laneway.links y where y.flow = v_flow and y.seq > p_after
                     order by y.seq limit p_limit) x) l
     cross join lateral (select t.* from laneway.jobs_view t where t.seq = l.seq offset 0) v
     where l.edges - l.own < 10000
     order by l.seq;
end $$;

-- The parents of a job in the order given at its submit, with their results: those after p_after, at most p_limit, and no
-- more once the results of the page have p_bytes. Null columns: that parent was deleted.
create or replace function laneway.results_of(p_seq bigint, p_after integer, p_limit integer, p_bytes integer default null)
returns table (place integer, id uuid, name text, job_type text, status text, result text)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    v_one  record;
    v_size bigint := 0;
begin
    -- A loop reads few rows ahead, and large results only when their turn comes.
    for v_one in
        select p_after + p.n as place, j.id, l.name, j.job_type,
               case when j.id is not null then coalesce(o.status, laneway.status_of(p.seq)) end as status,
               case when o.status = 'completed' then o.result end as result
          from laneway.links m
         cross join lateral unnest(m.parents[p_after + 1 : p_after + p_limit]) with ordinality as p (seq, n)
          left join lateral (select b.id, b.job_type from laneway.jobs b where b.seq = p.seq offset 0) j on true
          left join lateral (select x.name from laneway.links x where x.seq = p.seq offset 0) l on true
          left join lateral (select x.status, x.result from laneway.outcome x where x.seq = p.seq offset 0) o on true
         where m.seq = p_seq
         order by p.n
    loop
        place := v_one.place; id := v_one.id; name := v_one.name; job_type := v_one.job_type; status := v_one.status;
        result := v_one.result::text;
        return next;
        v_size := v_size + coalesce(octet_length(result), 0);
        exit when v_size >= p_bytes;
    end loop;
end $$;

-- Whether another job still needs this one: a child that waits for it or may read its result, or the handler that runs it
-- as a sub-job. Children in its flow: laneway.is_flow_kept.
create or replace function laneway.is_needed(p_seq bigint) returns boolean language sql stable as $$
    select exists (select from laneway.open_edges e where e.parent = p_seq
                      and (select true from laneway.outcome o where o.seq = e.child) is null)
        or exists (select from laneway.kept_results k where k.parent = p_seq
                      and (select true from laneway.outcome o where o.seq = k.child) is null
                      and (select true from laneway.jobs j where j.seq = k.child))
        or exists (select from laneway.links l where l.seq = p_seq and l.owner is not null
                      and (select true from laneway.outcome o where o.seq = l.owner) is null
                      and (select true from laneway.jobs j where j.seq = l.owner))
$$;

-- Deletes the links of ended jobs that are about to be deleted, and flows without jobs. Children of such jobs have ended
-- too: after a retry they do not wait for what does not exist. With its owner's rights: callers may not write edges.
create or replace function laneway.remove_links(p_seqs bigint[]) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_seqs  bigint[] := array(
        select o.seq from laneway.outcome o where o.seq = any (p_seqs));
    v_children bigint[];
    v_counts   integer[];
    v_flows    bigint[];
    v_looked   bigint[];
begin
    -- In one order for all callers: deletions of parents and children at the same time do not wait for each other.
    perform from (select x.parent, x.child from laneway.open_edges x where x.parent = any (v_seqs)
                  union select x.parent, x.child from laneway.open_edges x where x.child = any (v_seqs)
                  order by 1, 2 offset 0) k
      cross join lateral (select from laneway.open_edges e where e.parent = k.parent and e.child = k.child
                          offset 0 for update) e;
    perform from (select x.parent, x.child from laneway.kept_results x where x.parent = any (v_seqs)
                  union select p.seq, l.seq from laneway.links l cross join lateral unnest(l.parents) as p (seq)
                   where l.seq = any (v_seqs)
                  order by 1, 2 offset 0) k
      cross join lateral (select from laneway.kept_results r where r.parent = k.parent and r.child = k.child
                          offset 0 for update) r;
    with gone as (
        delete from laneway.open_edges e where e.parent = any (v_seqs) returning e.child
    ), counted as (
        select g.child, count(*)::integer as n from gone g group by g.child
    )
    select array_agg(c.child), array_agg(c.n) into v_children, v_counts from counted c;
    if v_children is not null then
        perform laneway.count_down(v_children, v_counts, clock_timestamp());
    end if;
    delete from laneway.open_edges e where e.child = any (v_seqs);
    delete from laneway.countdowns c where c.seq = any (v_seqs);
    delete from laneway.kept_results k where k.parent = any (v_seqs);
    delete from laneway.kept_results k
     using laneway.links l cross join lateral unnest(l.parents) as p (seq)
     where l.seq = any (v_seqs) and k.parent = p.seq and k.child = l.seq;
    with gone as (
        delete from laneway.links l where l.seq = any (v_seqs) returning l.flow
    )
    select array_agg(distinct g.flow) into v_flows from gone g where g.flow is not null;
    -- Not flows that are locked, or that have jobs which another transaction deletes: the leader looks at them again.
    -- Not in the statement below, which would call it for each flow.
    v_looked := laneway.remove_empty_flows(array(
        select f.seq from laneway.flows f
         where f.seq = any (v_flows) and (select true from laneway.links l where l.flow = f.seq limit 1) is null));
    insert into laneway.flow_tallies (flow) select unnest(v_flows) except select unnest(v_looked);
end $$;

-- Whether a job is part of a flow that is kept longer than the job alone: as long as its job that ended last.
create or replace function laneway.is_flow_kept(p_seq bigint, p_keep_s double precision, p_now timestamptz)
returns boolean language sql stable as $$
    select coalesce((select s.status = 'running' or s.ended_at > p_now - make_interval(secs => p_keep_s)
                       from laneway.links l cross join lateral laneway.flow_sums(l.flow) s
                      where l.seq = p_seq and l.flow is not null), false)
$$;
