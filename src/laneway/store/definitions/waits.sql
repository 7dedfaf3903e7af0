-- Notes that the running attempt of a job waits for another job, or with p_ends that it no longer does. Returns whether it
-- did: never waits for the lease, which the handler's own transaction may lock, and notes at most 100 jobs. With its owner's rights: a handler's
-- client may not write leases.
create or replace function laneway.note_wait(p_job uuid, p_attempt integer, p_for uuid, p_ends boolean) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_for bigint := (select j.seq from laneway.jobs j where j.id = p_for);
    v_seq bigint;
begin
    select l.seq into v_seq from laneway.lease l
     where l.seq = (select j.seq from laneway.jobs j where j.id = p_job) and l.attempt = p_attempt
       for no key update skip locked;
    if v_seq is null or v_for is null then return false; end if;
    if not p_ends and (select cardinality(l.waits_for) from laneway.lease l where l.seq = v_seq) >= 100 then
        return false;
    end if;
    update laneway.lease l
       set waits_for = nullif(array_remove(coalesce(l.waits_for, '{}'), v_for)
                              || case when p_ends then '{}'::bigint[] else array[v_for] end, '{}')
     where l.seq = v_seq;
    return true;
end $$;
