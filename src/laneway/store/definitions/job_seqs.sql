-- Sequence numbers of jobs, found by an index. For searches.

-- The newest ended jobs of these workspaces with these statuses, by the index of both. An array of one workspace:
-- with an equality the planner could take the order from another index, and read it to the end if there are few;
-- not a range, which would read all newer entries.
create or replace function laneway.ended_seqs(
    p_workspaces text[], p_statuses text[], p_before bigint, p_floor bigint, p_limit integer)
returns setof bigint language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
begin
    return query
    select e.seq from unnest(p_workspaces) w cross join unnest(p_statuses) s
     cross join lateral (select o.seq from laneway.outcome o
                          where o.workspace = any (array[w]) and o.status = s and o.seq < p_before and o.seq >= p_floor
                          order by o.workspace, o.seq desc limit p_limit) e
     order by e.seq desc limit p_limit;
end $$;

-- The number of the first job submitted at this time or later, by binary search: sequence numbers follow the submit
-- time only roughly, so callers allow for a minute. Null if there are few jobs, or without a time.
create or replace function laneway.first_seq_since(p_at timestamptz) returns bigint
language plpgsql stable
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
    v_low  bigint := (select j.seq from laneway.jobs j order by j.seq limit 1);
    v_high bigint := (select j.seq + 1 from laneway.jobs j order by j.seq desc limit 1);
    v_mid  bigint;
    v_seen timestamptz;
begin
    if p_at is null or v_low is null or v_high - v_low < 10000 then return null; end if;
    while v_low < v_high loop
        v_mid := (v_low + v_high) / 2;
        select j.created_at into v_seen from laneway.jobs j where j.seq >= v_mid order by j.seq limit 1;
        if v_seen >= p_at then
            v_high := v_mid;
        else
            v_low := v_mid + 1;
        end if;
    end loop;
    return v_low;
end $$;
