-- The lane in force for a job type, or for the analyses of one.
create or replace function laneway.lane_of(p_job_type text) returns text language sql stable as $$
    select case when p_job_type like E'\x01%' then 'analysis' else coalesce(
        (select name from laneway.worker_lanes where p_job_type = any (job_types)), 'default') end
$$;

-- The sub-queue of a type's analyses: no job type begins with a control character.
create or replace function laneway.analysis_of(p_job_type text) returns text language sql immutable as $$
    select E'\x01' || p_job_type
$$;

-- Puts a job type that is in no lane into the one named; a row that has it already wins. The lock
-- comes before the look, so that workers which start together do not put it there twice.
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
