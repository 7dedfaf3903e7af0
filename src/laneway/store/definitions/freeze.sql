-- Drains the named lanes (null: every enabled one, and all frozen ones) and stores the previous state of each.
-- A second freeze keeps the first stored state, except of a lane that was resumed in between. Returns the
-- lanes; after it commits, no claim in them commits.
create or replace function laneway.freeze(p_lanes text[], p_by text) returns text[]
language plpgsql volatile as $$
declare
    v_lanes text[];
begin
    perform pg_advisory_xact_lock(5577006791947779410);
    v_lanes := array(
        select l.name from laneway.worker_lanes l
         where case when p_lanes is not null then l.name = any (p_lanes)
                    else l.enabled or exists (select from laneway.frozen_lanes f where f.lane = l.name) end
         order by l.name);
    perform set_config('laneway.actor', p_by, true);
    insert into laneway.frozen_lanes (lane, was_enabled, frozen_by)
    select l.name, l.enabled, p_by from laneway.worker_lanes l where l.name = any (v_lanes)
    on conflict (lane) do update
       set was_enabled = true, frozen_at = excluded.frozen_at, frozen_by = excluded.frozen_by
     where excluded.was_enabled;
    update laneway.worker_lanes set enabled = false, updated_by = p_by where name = any (v_lanes) and enabled;
    return v_lanes;
end $$;

-- Restores the previous state of frozen lanes (null: all). A lane that was resumed by hand meanwhile stays as it
-- is; a deleted one is only removed from the list.
create or replace function laneway.thaw(p_lanes text[], p_by text)
returns table (lane text, was_enabled boolean, enabled boolean) language plpgsql volatile as $$
#variable_conflict use_column
declare
    v_lanes text[];
    v_were  boolean[];
begin
    perform pg_advisory_xact_lock(5577006791947779410);
    with forgotten as (
        delete from laneway.frozen_lanes f where p_lanes is null or f.lane = any (p_lanes)
        returning f.lane, f.was_enabled)
    select array_agg(f.lane order by f.lane), array_agg(f.was_enabled order by f.lane)
      into v_lanes, v_were from forgotten f;
    perform set_config('laneway.actor', p_by, true);
    update laneway.worker_lanes l set enabled = true, updated_by = p_by
      from unnest(v_lanes, v_were) as f (lane, was_enabled)
     where l.name = f.lane and f.was_enabled and not l.enabled;
    return query
    select l.name, f.was_enabled, l.enabled
      from unnest(v_lanes, v_were) as f (lane, was_enabled) join laneway.worker_lanes l on l.name = f.lane
     order by l.name;
end $$;
