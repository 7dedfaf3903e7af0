-- Jobs that match a filter, newest first, at most p_limit before p_before, by a bounded search: each row read costs
-- a part of p_look, a row that must be read completely the most. A search that stops before the page is full ends
-- with a row without an id: its seq is where it stopped, and where the next search continues. It uses an index
-- where one fits: the status by its table, ended jobs by workspace and status, jobs of an owner, and the submit
-- time, because sequence numbers follow it. Lane, type, worker and tag are checked on the way; p_q on the rest.
-- Null does not filter; p_older_than_s and p_newer_than_s use the database's clock. p_within: terms of owner,
-- workspace and lanes, of which at least one must match. p_private: the same for jobs whose private error messages
-- p_q may search, null for all. p_error_type: of jobs that failed, or were cancelled if p_status says so. With
-- p_was_approved only jobs that a person or a policy approved are read, by the table of approvals. p_ended_since and
-- p_ended_within_s: only jobs that ended then or later; no others are read. With p_delayed only jobs that wait for a time are
-- read: with the status `waiting` those whose handler sleeps, otherwise those that wait for a later run_at, by the table of
-- delayed jobs. With p_flow only jobs of that flow are read.
create or replace function laneway.search_jobs(
    p_status text, p_before bigint, p_limit integer, p_lane text, p_job_type text, p_tag text, p_worker text,
    p_workspace text, p_since timestamptz, p_until timestamptz, p_older_than_s double precision,
    p_newer_than_s double precision, p_q text, p_max_cost numeric, p_unit text, p_within jsonb, p_look integer,
    p_private jsonb default null, p_error_type text default null, p_was_approved boolean default null,
    p_ended_since timestamptz default null, p_ended_within_s double precision default null,
    p_delayed boolean default null, p_flow uuid default null)
returns table (seq bigint, id uuid)
language plpgsql stable rows 200
-- Planned per filter: null parameters cost nothing.
set plan_cache_mode = force_custom_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_sort = off
-- The tables are merged in the order of their index, and read only as far as a step needs.
set enable_hashagg = off
set jit = off
as $$
#variable_conflict use_column
declare
    c_ended   constant text[] := array['completed', 'failed', 'cancelled'];
    c_bytes   constant bigint := 2000000;
    v_until   timestamptz := least(p_until, clock_timestamp() - make_interval(secs => p_older_than_s));
    v_since   timestamptz := greatest(p_since, clock_timestamp() - make_interval(secs => p_newer_than_s));
    v_ended_since timestamptz := greatest(p_ended_since, clock_timestamp() - make_interval(secs => p_ended_within_s));
    v_end     bigint := least(p_before, laneway.first_seq_since(v_until + interval '1 minute'));
    v_floor   bigint := coalesce(laneway.first_seq_since(v_since - interval '1 minute'), 0);
    v_owners  text[] := coalesce((select array_agg(distinct t.owner) from jsonb_to_recordset(p_within) as t (owner text)
                                   where t.owner is not null), '{}');
    -- Whether jobs of other owners are read, and of which workspaces and lanes, if not all.
    v_wide    boolean := p_within is null or exists (
                  select from jsonb_to_recordset(p_within) as t (owner text) where t.owner is null);
    -- Whether jobs that have not ended are read.
    v_live    boolean;
    v_places  text[];
    v_lanes   text[];
    v_workers uuid[];
    -- Types that are in those lanes now; with v_rest, all types that are not.
    v_types   text[] := '{}';
    v_rest    boolean := false;
    v_is_by_job boolean := p_tag is not null or v_since is not null or v_until is not null;
    -- The tables to read.
    v_ended   text[] := case when p_status = any (c_ended) then array[p_status] when p_status is null then c_ended else '{}' end;
    -- Whether a row has all the columns to check, so that the job need not be read completely.
    v_exact   boolean := p_q is null and p_max_cost is null and p_was_approved is null and p_flow is null;
    v_flow    bigint := (select f.seq from laneway.flows f where f.id = p_flow);
    v_split   boolean := false;
    v_all     boolean := false;
    v_low     text;
    v_high    text;
    v_few     boolean := false;
    -- The cost of a row read, and how many matching rows are read completely in one step.
    v_price   integer;
    v_whole   integer;
    v_step    integer := least(p_limit, 25);
    v_at      bigint := v_end;
    v_room    integer := p_limit;
    v_spent   bigint := 0;
    v_bytes   bigint := 0;
    v_walked  integer;
    v_last    bigint;
    v_hits    bigint[];
    v_found   integer;
    v_size    bigint;
begin
    if p_error_type is not null then
        p_status := coalesce(p_status, 'failed');
        if p_status <> all (c_ended) then return; end if;
        v_ended := array[p_status];
    end if;
    select case when count(*) > count(t.workspace) then null else array_agg(distinct t.workspace) end into v_places
      from jsonb_to_recordset(p_within) as t (owner text, workspace text) where t.owner is null;
    if p_workspace is not null then
        v_places := case when v_places is null or p_workspace = any (v_places) then array[p_workspace] else '{}' end;
    end if;
    select case when count(*) > count(t.lanes) then null else
                (select array_agg(distinct n) from jsonb_to_recordset(p_within) as l (owner text, lanes text[]), unnest(l.lanes) n
                  where l.owner is null) end
      into v_lanes from jsonb_to_recordset(p_within) as t (owner text, lanes text[]) where t.owner is null;
    if p_lane is not null then
        v_lanes := case when v_lanes is null or p_lane = any (v_lanes) then array[p_lane] else '{}' end;
    end if;
    v_exact := v_exact and (p_within is null or jsonb_array_length(p_within) = 1 and v_wide)
               and (v_places is null or cardinality(v_ended) = 1);
    v_rest := coalesce('default' = any (v_lanes), false);
    if v_lanes is not null then
        v_types := array(select n from laneway.worker_lanes l cross join unnest(l.job_types) n
                          where (l.name = any (v_lanes)) <> v_rest);
    end if;
    if p_worker is not null then
        v_workers := array(select w.id from laneway.workers w where w.name = p_worker or w.id::text = p_worker)
            || case when p_worker ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then array[p_worker::uuid] end;
        if v_workers = '{}' then return; end if;
    end if;
    -- A job without any state is only found in the table jobs.
    v_all := v_wide and p_status is null and v_ended_since is null and v_places is null and v_lanes is null and v_workers is null;
    if v_wide and not v_all and v_ended <> '{}' and v_places is null and p_status is not null then
        -- By workspace and status, unless there are too many workspaces.
        v_places := array(with recursive met as (
            (select o.workspace from laneway.outcome o order by o.workspace limit 1)
            union all
            select (select o.workspace from laneway.outcome o where o.workspace > m.workspace order by o.workspace limit 1)
              from met m where m.workspace is not null)
            select m.workspace from met m where m.workspace is not null limit 101);
        v_split := cardinality(v_places) <= 100;
        if not v_split then v_places := null; end if;
    else
        v_split := v_places is not null;
    end if;
    -- A filter that matches often is found sooner in all ended jobs.
    v_split := v_split and (select 4 * count(*) filter (where o.workspace = any (v_places) and o.status = any (v_ended)) < count(*)
                              from (select x.workspace, x.status from laneway.outcome x where x.seq < v_end
                                     order by x.seq desc limit 200) o);
    -- Sorting the few queued rows of a type is faster than searching for them among all.
    if p_status = 'pending' then
        v_low := coalesce(laneway.analysis_of(p_job_type), E'\x01');
    elsif p_status = 'approved' then
        v_low := p_job_type;
    end if;
    if v_low is not null then
        v_high := case when p_job_type is null then E'\x02' else v_low || E'\x01' end;
        v_few := (select count(*) from (select from laneway.ready w where w.job_type >= v_low and w.job_type < v_high
                                         order by w.job_type, w.fresh, w.rank, w.seq limit 5001) x) <= 5000;
    end if;
    if p_was_approved or p_delayed or p_flow is not null then
        -- Approvals, delayed jobs or links replace all other tables.
        v_wide := false;
        v_all := false;
        v_owners := '{}';
    end if;
    v_live := v_wide and v_ended_since is null;
    v_price := 1 + case when v_split or v_owners <> '{}' or p_was_approved or p_delayed or p_flow is not null then 4 else 0 end
        + case when v_is_by_job then 4 else 0 end + case when p_error_type is not null then 4 else 0 end
        + case when v_ended_since is not null then 4 else 0 end;
    loop
        with walked as materialized (
            -- Jobs of the owner may be found twice.
            select c.seq, bool_or(c.fits) as fits from (
                (select j.seq, p_job_type is null or j.job_type = p_job_type as fits from laneway.jobs j
                  where v_all and j.seq < v_at and j.seq >= v_floor order by j.seq desc limit v_step)
                union all
                (select j.seq, (p_job_type is null or j.job_type = p_job_type)
                        and (p_workspace is null or j.workspace = p_workspace)
                        and case when p_status = any (c_ended)
                                 then (select o.status from laneway.outcome o where o.seq = j.seq) = p_status
                                 when p_status = 'running' then (select true from laneway.lease l where l.seq = j.seq)
                                 when p_status = 'awaiting_approval' then (select true from laneway.awaiting a where a.seq = j.seq)
                                 when p_status = 'waiting' then (select true from laneway.waiting a where a.seq = j.seq)
                                 else p_status is null or (select true from laneway.outcome o where o.seq = j.seq) is null end
                        and (p_error_type is null or (select coalesce(o.error_type, left(o.error ->> 'type', 200))
                                                        from laneway.outcome o where o.seq = j.seq) = p_error_type)
                   from unnest(v_owners) n
                  cross join lateral (
                     -- Row comparison: with an equality the planner could take the order from the primary key, and
                     -- read it to the end for an owner of few jobs.
                     select x.seq, x.job_type, x.workspace from laneway.jobs x
                      where (x.created_by collate "C", x.seq) < (n, v_at) and (x.created_by collate "C", x.seq) >= (n, v_floor)
                        and x.created_by is not null
                      order by x.created_by collate "C" desc, x.seq desc limit v_step) j
                  -- Each part that is read with others sorts itself, so a merge needs no sort, reading all one more.
                  order by j.seq desc limit v_step)
                union all
                (select o.seq, o.status = any (v_ended) and (v_places is null or o.workspace = any (v_places))
                        and (p_job_type is null or o.job_type = p_job_type)
                        and (v_workers is null or o.worker_id = any (v_workers))
                        and (v_lanes is null or coalesce(nullif(o.lane, 'analysis') = any (v_lanes),
                                                         (o.job_type = any (v_types)) <> v_rest))
                        and (p_error_type is null
                             or coalesce(o.error_type, left(o.error ->> 'type', 200)) = p_error_type)
                   from laneway.outcome o
                  where v_wide and not v_all and not v_split and v_ended <> '{}' and o.seq < v_at and o.seq >= v_floor
                  order by o.seq desc limit v_step)
                union all
                (select o.seq, (p_job_type is null or o.job_type = p_job_type)
                        and (v_workers is null or o.worker_id = any (v_workers))
                        and (v_lanes is null or coalesce(nullif(o.lane, 'analysis') = any (v_lanes),
                                                         (o.job_type = any (v_types)) <> v_rest))
                        and (p_error_type is null
                             or coalesce(o.error_type, left(o.error ->> 'type', 200)) = p_error_type)
                   from laneway.ended_seqs(v_places, v_ended, v_at, v_floor, v_step) e
                  cross join lateral (select x.seq, x.job_type, x.worker_id, x.lane, x.error, x.error_type
                                        from laneway.outcome x
                                       where x.seq = e offset 0) o
                  where v_wide and v_split order by o.seq desc limit v_step)
                union all
                (select a.seq, a.decision in ('approved', 'automatic') and (p_job_type is null
                        or (select b.job_type from laneway.jobs b where b.seq = a.seq) = p_job_type)
                   from laneway.approvals a
                  where p_was_approved and p_delayed is not true and p_flow is null and a.seq < v_at and a.seq >= v_floor order by a.seq desc limit v_step)
                union all
                (select l.seq, case when l.job_type like E'\x01%'
                            then p_status is null and (p_job_type is null or l.job_type = laneway.analysis_of(p_job_type))
                                 and (v_lanes is null or (substr(l.job_type, 2) = any (v_types)) <> v_rest)
                            else (p_job_type is null or l.job_type = p_job_type)
                                 and (v_lanes is null or l.lane = any (v_lanes)) end
                        and (v_workers is null or l.worker_id = any (v_workers))
                        and (v_places is null or l.workspace = any (v_places))
                   from laneway.lease l
                  where v_live and not v_all and (p_status is null or p_status = 'running')
                    and l.seq < v_at and l.seq >= v_floor order by l.seq desc limit v_step)
                union all
                (select l.seq, (p_job_type is null or l.job_type = v_low)
                        and (v_lanes is null or (substr(l.job_type, 2) = any (v_types)) <> v_rest)
                        and (v_workers is null or l.worker_id = any (v_workers))
                        and (v_places is null or l.workspace = any (v_places))
                   from laneway.lease l
                  where v_live and p_status = 'pending' and l.job_type >= E'\x01' and l.job_type < E'\x02'
                    and l.seq < v_at and l.seq >= v_floor order by l.seq desc limit v_step)
                union all
                (select w.seq, v_lanes is null or (ltrim(w.job_type, E'\x01') = any (v_types)) <> v_rest
                   from (select x.seq, x.job_type from laneway.ready x
                          where v_few and x.job_type >= v_low and x.job_type < v_high
                          order by x.job_type, x.fresh, x.rank, x.seq limit 5001) w
                  where v_live and v_workers is null and w.seq < v_at and w.seq >= v_floor order by w.seq desc limit v_step)
                union all
                (select w.seq, case when p_status is null then true else (w.job_type like E'\x01%') = (p_status = 'pending') end
                        and (p_job_type is null or ltrim(w.job_type, E'\x01') = p_job_type)
                        and (v_lanes is null or (ltrim(w.job_type, E'\x01') = any (v_types)) <> v_rest)
                   from laneway.ready w
                  where v_live and not v_all and not v_few and v_workers is null
                    and (p_status is null or p_status in ('approved', 'pending'))
                    and w.seq < v_at and w.seq >= v_floor order by w.seq desc limit v_step)
                union all
                (select d.seq, (p_status is null or d.job_type not like E'\x01%')
                        and (p_job_type is null or ltrim(d.job_type, E'\x01') = p_job_type)
                        and (v_lanes is null or (ltrim(d.job_type, E'\x01') = any (v_types)) <> v_rest)
                   from laneway.delayed d
                  where v_live and not v_all and v_workers is null and (p_status is null or p_status = 'approved')
                    and d.seq < v_at and d.seq >= v_floor order by d.seq desc limit v_step)
                union all
                (select d.seq, (p_job_type is null or d.job_type = v_low)
                        and (v_lanes is null or (substr(d.job_type, 2) = any (v_types)) <> v_rest)
                   from laneway.delayed d
                  where v_live and v_workers is null and p_status = 'pending' and d.job_type >= E'\x01' and d.job_type < E'\x02'
                    and d.seq < v_at and d.seq >= v_floor order by d.seq desc limit v_step)
                union all
                (select d.seq, d.run_at > clock_timestamp()
                        and (p_status is null or (d.job_type like E'\x01%') = (p_status = 'pending'))
                        and (p_job_type is null or ltrim(d.job_type, E'\x01') = p_job_type)
                        -- Otherwise the complete job is checked.
                        and (not v_exact or v_lanes is null or (ltrim(d.job_type, E'\x01') = any (v_types)) <> v_rest)
                   from laneway.delayed d
                  where p_delayed and p_flow is null and p_status is distinct from 'waiting'
                    and v_workers is null and d.seq < v_at and d.seq >= v_floor
                  order by d.seq desc limit v_step)
                union all
                (select b.seq, (p_job_type is null or b.job_type = p_job_type)
                        and (v_lanes is null or (b.job_type = any (v_types)) <> v_rest)
                        and (v_places is null or b.workspace = any (v_places))
                   from laneway.key_waiters b
                  where v_live and not v_all and v_workers is null and (p_status is null or p_status = 'approved')
                    and b.seq < v_at and b.seq >= v_floor order by b.seq desc limit v_step)
                union all
                (select a.seq, (p_job_type is null or a.job_type = p_job_type)
                        and (v_lanes is null or (a.job_type = any (v_types)) <> v_rest)
                        and (v_places is null or a.workspace = any (v_places))
                   from laneway.awaiting a
                  where v_live and not v_all and v_workers is null and (p_status is null or p_status = 'awaiting_approval')
                    and a.seq < v_at and a.seq >= v_floor order by a.seq desc limit v_step)
                union all
                (select k.seq, (p_job_type is null or (select b.job_type from laneway.jobs b where b.seq = k.seq) = p_job_type)
                        and case when p_status = any (c_ended)
                                 then (select o.status from laneway.outcome o where o.seq = k.seq) = p_status
                                 when p_status = 'running' then (select true from laneway.lease l where l.seq = k.seq)
                                 when p_status = 'waiting' then (select true from laneway.waiting a where a.seq = k.seq)
                                 else p_status is null or (select true from laneway.outcome o where o.seq = k.seq) is null end
                        and (p_delayed is not true or case when p_status = 'waiting'
                             then exists (select from laneway.waiting a where a.seq = k.seq and a.reason = 'sleep')
                             else exists (select from laneway.delayed d where d.seq = k.seq and d.run_at > clock_timestamp()) end)
                   from (select x.seq from laneway.links x
                          where (x.flow, x.seq) < (v_flow, v_at) and (x.flow, x.seq) >= (v_flow, v_floor)
                            and x.flow is not null
                          order by x.flow desc, x.seq desc limit v_step) k
                  -- Outside: without a flow the planner drops the part, which is not in the order of the others.
                  where v_flow is not null)
                union all
                (select q.seq, (p_job_type is null or q.job_type = p_job_type) and (p_delayed is not true or q.reason = 'sleep')
                        -- Otherwise the complete job is checked.
                        and (p_delayed and not v_exact or (v_lanes is null or (q.job_type = any (v_types)) <> v_rest)
                             and (v_places is null
                                  or (select b.workspace from laneway.jobs b where b.seq = q.seq) = any (v_places)))
                   from laneway.waiting q
                  where case when p_delayed then p_flow is null and p_status = 'waiting'
                             else v_live and not v_all and (p_status is null or p_status = 'waiting') end
                    and v_workers is null and q.seq < v_at and q.seq >= v_floor order by q.seq desc limit v_step)) c
             group by c.seq order by c.seq desc limit v_step
        )
        select count(*), min(w.seq), array_agg(w.seq order by w.seq desc) filter (
                   where w.fits and (not v_is_by_job or exists (
                       select from laneway.jobs j
                        where j.seq = w.seq and (p_tag is null or p_tag = any (j.tags))
                          and (v_since is null or j.created_at >= v_since) and (v_until is null or j.created_at < v_until)))
                     and (v_ended_since is null or exists (
                       select from laneway.outcome o where o.seq = w.seq and o.finished_at >= v_ended_since)))
          into v_walked, v_last, v_hits from walked w;
        v_whole := greatest((p_look - v_spent) / 100, 25);
        if not v_exact and cardinality(v_hits) > v_whole then
            v_hits := v_hits[1:v_whole];
            v_last := v_hits[v_whole];
            v_walked := v_step;
        end if;
        v_found := 0;
        if v_hits is not null and v_exact then
            return query
            select h.seq, j.id from unnest(v_hits) with ordinality as h (seq, n)
             cross join lateral (select x.id from laneway.jobs x where x.seq = h.seq offset 0) j
             order by h.n limit v_room;
            get diagnostics v_found = row_count;
        elsif v_hits is not null then
            return query
            select v.seq, v.id from unnest(v_hits) with ordinality as h (seq, n)
             cross join lateral (select t.* from laneway.jobs_view t where t.seq = h.seq offset 0) v
             where (p_status is null or v.status = p_status) and (p_lane is null or v.lane = p_lane)
               and (p_workspace is null or v.workspace = p_workspace) and (p_job_type is null or v.job_type = p_job_type)
               and (p_worker is null or v.worker = p_worker or v.claimed_by::text = p_worker)
               and (p_q is null or laneway.mentions(p_q, v.id, v.job_type, case
                        when p_private is null or v.error -> 'public' = 'true'
                             or laneway.is_within(p_private, v.created_by, v.workspace, v.lane) then v.error
                        when jsonb_typeof(v.error) = 'object' then v.error - 'message' end, v.payload))
               and (p_max_cost is null or laneway.costs_at_most(v.seq, p_max_cost, p_unit))
               and (p_error_type is null or left(v.error ->> 'type', 200) = p_error_type)
               and (p_was_approved is null or p_was_approved = exists (
                        select from laneway.approvals a where a.seq = v.seq and a.decision in ('approved', 'automatic')))
               and (p_within is null or laneway.is_within(p_within, v.created_by, v.workspace, v.lane))
             order by h.n limit v_room;
            get diagnostics v_found = row_count;
        end if;
        v_room := v_room - v_found;
        exit when v_room <= 0 or v_walked < v_step;
        v_at := v_last;
        v_spent := v_spent + v_walked * v_price
            + case when v_exact then 0 else 100 * coalesce(cardinality(v_hits), 0) end;
        if p_q is not null and v_hits is not null then
            v_size := (select sum(pg_column_size(j.payload)) from unnest(v_hits) h (seq)
                        cross join lateral (select x.payload from laneway.jobs x where x.seq = h.seq offset 0) j);
            v_bytes := v_bytes + v_size;
        end if;
        if v_spent >= p_look or v_bytes >= c_bytes then
            seq := v_at;
            return next;
            exit;
        end if;
        if (v_exact or coalesce(cardinality(v_hits), 0) <= 100) and coalesce(v_size, 0) < c_bytes / 40 then
            v_step := least(v_step * 4, 5000);
        end if;
        v_step := greatest(least(v_step, (p_look - v_spent) / v_price), 25);
    end loop;
end $$;

-- Whether a text occurs, ignoring case, in the searched fields of a job; the cheapest fields first.
create or replace function laneway.mentions(p_text text, p_id uuid, p_job_type text, p_error jsonb, p_payload jsonb)
returns boolean language sql immutable as $$
    select strpos(p_id::text, lower(p_text)) > 0 or strpos(lower(p_job_type), lower(p_text)) > 0
        or strpos(lower(concat(p_error ->> 'type', ': ', p_error ->> 'message')), lower(p_text)) > 0
        or strpos(lower(p_payload::text), lower(p_text)) > 0
$$;

-- Whether the cost in a job's analysis is at most this; false without a cost.
create or replace function laneway.costs_at_most(p_seq bigint, p_cost numeric, p_unit text)
returns boolean language sql stable as $$
    select exists (select from laneway.approvals a where a.seq = p_seq and a.cost <= p_cost
                      and (p_unit is null or a.unit = p_unit))
$$;
