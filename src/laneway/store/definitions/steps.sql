-- Stores the result of a step if the attempt is the running one; it counts as progress. Returns kept,
-- cancel_requested (kept too), fenced or busy (try again), and the result as later attempts will read it. A
-- repeated call keeps the first result. Never waits for a lock.
-- Refuses more than 5,000 steps of a job, or 8 MiB of their results together.
create or replace function laneway.save_step(
    p_seq bigint, p_attempt integer, p_name text, p_result text, p_took_s double precision,
    p_now timestamptz default null, out answer text, out result text)
language plpgsql volatile as $$
declare
    v_cancel boolean;
    v_count  bigint;
    v_bytes  bigint;
begin
    select l.cancel_requested_at is not null into v_cancel from laneway.lease l
     where l.seq = p_seq and l.attempt = p_attempt for no key update skip locked;
    if not found then
        perform from laneway.lease l where l.seq = p_seq and l.attempt = p_attempt;
        answer := case when found then 'busy' else 'fenced' end;
        return;
    end if;
    update laneway.lease l set last_progress_at = coalesce(p_now, clock_timestamp()) where l.seq = p_seq;
    select s.result::text into result from laneway.steps s where s.seq = p_seq and s.name = p_name;
    if not found then
        select count(*), coalesce(sum(coalesce(s.size, pg_column_size(s.result))), 0) into v_count, v_bytes
          from laneway.steps s where s.seq = p_seq;
        if v_count >= 5000 or v_bytes + octet_length(p_result) > 8388608 then
            raise exception using errcode = 'LW001', message = format(
                'step %s: a job keeps at most 5000 steps and 8388608 bytes of their results', p_name);
        end if;
        if exists (select from laneway.handler_waits h where h.seq = p_seq and h.name = p_name) then
            raise exception using errcode = 'LW001', message = format(
                'step %s: a wait of this job has the name; steps and waits need different names', p_name);
        end if;
        insert into laneway.steps (seq, name, attempt, result, took_s, size)
        values (p_seq, p_name, p_attempt, p_result::jsonb, p_took_s, octet_length(p_result))
        returning steps.result::text into result;
    end if;
    answer := case when v_cancel then 'cancel_requested' else 'kept' end;
end $$;

-- The newest finished steps of a job, in the order in which they finished.
create or replace function laneway.finished_steps(p_id uuid, p_limit integer)
returns table (name text, attempt integer, took_s double precision, at timestamptz)
language sql stable as $$
    select s.name, s.attempt, s.took_s, s.at
      from (select x.name, x.attempt, x.took_s, x.at from laneway.steps x
             where x.seq = (select j.seq from laneway.jobs j where j.id = p_id)
             order by x.at desc, x.name desc limit p_limit) s
     order by s.at, s.name
$$;
