-- The lane in force for a job type.
create or replace function laneway.lane_of(p_job_type text) returns text language sql stable as $$
    select coalesce(
        (select name from laneway.worker_lanes where p_job_type = any (job_types)), 'default')
$$;

-- Puts a job type that is in no lane into the one named; a row that has it already wins. The lock
-- comes before the look, so that workers which start together do not put it there twice.
create or replace function laneway.adopt_type(p_lane text, p_job_type text, p_by text) returns boolean
language plpgsql volatile as $$
begin
    if exists (select from laneway.worker_lanes where p_job_type = any (job_types)) then return false; end if;
    perform pg_advisory_xact_lock(5577006791947779410);
    if exists (select from laneway.worker_lanes where p_job_type = any (job_types)) then return false; end if;
    update laneway.worker_lanes set job_types = job_types || p_job_type, updated_by = p_by
     where name = p_lane and name <> 'default';
    return found;
end $$;
