-- The current lane of a job type, or of its analyses.
create or replace function laneway.lane_of(p_job_type text) returns text language sql stable as $$
    select case when p_job_type like E'\x01%' then 'analysis' else coalesce(
        (select name from laneway.worker_lanes where p_job_type = any (job_types)), 'default') end
$$;

-- The sub-queue of a type's analyses: no job type starts with a control character.
create or replace function laneway.analysis_of(p_job_type text) returns text language sql immutable as $$
    select E'\x01' || p_job_type
$$;

-- Creates missing lanes like the first one given, and adds each job type that is in no lane to its named lane; existing
-- assignments win, and the first one of a type that is named twice. One change for all, because each change costs as
-- much. Returns the created lanes.
create or replace function laneway.adopt_types(
    p_lanes text[], p_types text[], p_max_slots integer, p_poll_ms integer, p_stale_minutes integer, p_lease_s integer,
    p_by text)
returns setof text language plpgsql volatile as $$
begin
    if not exists (
        select from unnest(p_lanes, p_types) as g (lane, job_type)
         where not exists (select from laneway.worker_lanes l where l.name = g.lane)
            or g.lane <> 'default' and g.job_type is not null and g.job_type not in (
                select n from laneway.worker_lanes l cross join unnest(l.job_types) n)) then
        return;
    end if;
    perform pg_advisory_xact_lock(5577006791947779410);
    perform set_config('laneway.actor', p_by, true);
    return query
    insert into laneway.worker_lanes (name, max_slots, poll_interval_ms, stale_timeout_minutes, lease_seconds, updated_by)
    select distinct g, p_max_slots, p_poll_ms, p_stale_minutes, p_lease_s, p_by from unnest(p_lanes) g
     where not exists (select from laneway.worker_lanes l where l.name = g)
     order by g
    on conflict (name) do nothing
    returning name::text;
    update laneway.worker_lanes l set job_types = l.job_types || a.job_types, updated_by = p_by
      from (select f.lane, array_agg(f.job_type order by f.n) as job_types
              from (select distinct on (g.job_type) g.lane, g.job_type, g.n
                      from unnest(p_lanes, p_types) with ordinality as g (lane, job_type, n)
                     where g.job_type is not null and g.job_type not in (
                         select n from laneway.worker_lanes w cross join unnest(w.job_types) n)
                     order by g.job_type, g.n) f
             where f.lane <> 'default' group by f.lane) a
     where l.name = a.lane;
end $$;

-- Adds a job type that is in no lane to the named one; an existing assignment wins. Locks before it reads, so that
-- workers that start together do not add it twice.
create or replace function laneway.adopt_type(p_lane text, p_job_type text, p_by text) returns boolean
language plpgsql volatile as $$
begin
    if exists (select from laneway.worker_lanes where p_job_type = any (job_types)) then return false; end if;
    perform pg_advisory_xact_lock(5577006791947779410);
    if exists (select from laneway.worker_lanes where p_job_type = any (job_types)) then return false; end if;
    perform set_config('laneway.actor', p_by, true);
    update laneway.worker_lanes set job_types = job_types || p_job_type, updated_by = p_by
     where name = p_lane and name <> 'default';
    return found;
end $$;
