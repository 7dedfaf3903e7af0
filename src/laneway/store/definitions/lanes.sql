-- The current lane of a job type, or of its analyses.
create or replace function laneway.lane_of(p_job_type text) returns text language sql stable as $$
    select case when p_job_type like E'\x01%' then 'analysis' else coalesce(
        (select name from laneway.worker_lanes where p_job_type = any (job_types)), 'default') end
$$;

-- The sub-queue of a type's analyses: no job type starts with a control character.
create or replace function laneway.analysis_of(p_job_type text) returns text language sql immutable as $$
    select E'\x01' || p_job_type
$$;

-- Creates missing lanes with the settings of p_like, and adds each job type that is in no lane to its named lane; existing
-- assignments win, and the first one of a type that is named twice. One change for all, because each change costs as
-- much. Returns the created lanes.
create or replace function laneway.assign_types(p_lanes text[], p_types text[], p_like jsonb, p_by text)
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
    insert into laneway.worker_lanes
    select n.*
      from (select distinct g as name from unnest(p_lanes) g
             where not exists (select from laneway.worker_lanes l where l.name = g)) m
     cross join jsonb_populate_record(null::laneway.worker_lanes, p_like || jsonb_build_object(
               'name', m.name, 'job_types', '[]'::jsonb, 'updated_at', clock_timestamp(), 'updated_by', p_by)) n
     order by m.name
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

-- Deletes the named lanes, then creates or overwrites those of p_lanes, which have all columns. Two statements: job types
-- move between the others in any order, because a statement is checked at its end.
create or replace function laneway.load_lanes(p_lanes jsonb, p_deleted text[], p_by text) returns void
language plpgsql volatile as $$
declare
    v_columns text;
    v_new     text;
begin
    select string_agg(format('%I', a.attname), ', ' order by a.attnum),
           string_agg(format('excluded.%I', a.attname), ', ' order by a.attnum)
      into v_columns, v_new
      from pg_attribute a
     where a.attrelid = 'laneway.worker_lanes'::regclass and a.attnum > 0 and not a.attisdropped
       and a.attname <> 'updated_at';
    perform set_config('laneway.actor', p_by, true);
    delete from laneway.worker_lanes l where l.name = any (p_deleted);
    execute format('insert into laneway.worker_lanes (%1$s)
                    select %1$s from jsonb_populate_recordset(null::laneway.worker_lanes, $1)
                    on conflict (name) do update set (%1$s) = row (%2$s)', v_columns, v_new) using p_lanes;
end $$;
