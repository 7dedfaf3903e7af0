-- Renews leases by (seq, attempt). Returns those not plainly renewed: cancel_requested (renewed, stop soon),
-- fenced (not the running attempt), busy (try again).
-- Never waits for a lock while it holds one, so it cannot deadlock with a settle of the same jobs.
-- No key update: a handler's own transaction may have the row locked (guard) while its lease is renewed.
create or replace function laneway.heartbeat(
    p_seqs bigint[], p_attempts integer[], p_now timestamptz default null)
returns table (seq bigint, attempt integer, answer text)
language plpgsql volatile
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
begin
    return query
    with given as materialized (
        select * from unnest(p_seqs, p_attempts) as g (seq, attempt)
    ), held as materialized (
        select h.tid from given g
         cross join lateral (select l.ctid as tid from laneway.lease l
                              where l.seq = g.seq and l.attempt = g.attempt offset 0 for no key update skip locked) h
    ), beaten as (
        update laneway.lease l set lease_until = v_now + make_interval(secs => l.lease_seconds)
         where l.ctid = any (array(select tid from held))
        returning l.seq, l.attempt, l.cancel_requested_at
    )
    select b.seq, b.attempt, 'cancel_requested' from beaten b where b.cancel_requested_at is not null
    union all
    select g.seq, g.attempt,
           case when (select true from laneway.lease l where l.seq = g.seq and l.attempt = g.attempt)
                then 'busy' else 'fenced' end
      from given g where (g.seq, g.attempt) not in (select b.seq, b.attempt from beaten b);
end $$;

-- Stores progress, checkpoints and log lines of attempts, each if it is the running one. A null stage, done,
-- total, message or checkpoint keeps the stored value. Returns the same as heartbeat.
-- An attempt keeps 10,000 log lines; those after the first 1,000 are cut to 256 characters.
create or replace function laneway.report(
    p_seqs bigint[], p_attempts integer[],
    p_stages text[], p_dones double precision[], p_totals double precision[], p_messages text[], p_checkpoints text[],
    p_log_seqs bigint[], p_log_attempts integer[], p_log_lines integer[], p_log_levels text[], p_log_texts text[],
    p_log_ages double precision[], p_now timestamptz default null)
returns table (seq bigint, attempt integer, answer text)
language plpgsql volatile
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
begin
    return query
    with moved as materialized (
        select * from unnest(p_seqs, p_attempts, p_stages, p_dones, p_totals, p_messages, p_checkpoints)
            as m (seq, attempt, stage, done, total, message, checkpoint)
    ), lines as materialized (
        select * from unnest(p_log_seqs, p_log_attempts, p_log_lines, p_log_levels, p_log_texts, p_log_ages)
            as n (seq, attempt, line, level, message, age)
    ), given as materialized (
        select m.seq, m.attempt from moved m union select n.seq, n.attempt from lines n
    ), held as materialized (
        select h.* from given g
         cross join lateral (select l.seq, l.attempt, l.cancel_requested_at from laneway.lease l
                              where l.seq = g.seq and l.attempt = g.attempt
                             offset 0 for no key update skip locked) h
    ), proven as materialized (
        -- is true: a hashed lookup; a join would compare every row with every other.
        select m.* from moved m
         where ((m.seq, m.attempt) in (select h.seq, h.attempt from held h)) is true
    ), touched as (
        update laneway.lease l set last_progress_at = v_now
         where l.seq = any (array(select m.seq from proven m))
    ), noted as (
        insert into laneway.progress as p (seq, attempt, stage, done, total, message, checkpoint, at)
        select m.seq, m.attempt, m.stage, m.done, m.total, m.message, m.checkpoint::jsonb, v_now
          from proven m
        on conflict (seq) do update
           set attempt = excluded.attempt, stage = coalesce(excluded.stage, p.stage),
               done = coalesce(excluded.done, p.done), total = coalesce(excluded.total, p.total),
               message = coalesce(excluded.message, p.message),
               checkpoint = coalesce(excluded.checkpoint, p.checkpoint), at = excluded.at
    ), logged as (
        insert into laneway.logs (seq, attempt, line, level, message, at)
        select n.seq, n.attempt, n.line, n.level,
               case when n.line = 10000 then 'the log of this attempt is full: further lines are not kept'
                    else left(n.message, case when n.line <= 1000 then 10000 else 256 end) end,
               v_now - make_interval(secs => n.age)
          from lines n where n.line <= 10000 and ((n.seq, n.attempt) in (select h.seq, h.attempt from held h)) is true
        on conflict do nothing
    )
    select h.seq, h.attempt, 'cancel_requested' from held h where h.cancel_requested_at is not null
    union all
    select g.seq, g.attempt,
           case when (select true from laneway.lease l where l.seq = g.seq and l.attempt = g.attempt)
                then 'busy' else 'fenced' end
      from given g where (g.seq, g.attempt) not in (select h.seq, h.attempt from held h);
    if p_seqs <> '{}' and exists (select from laneway.watches) then
        perform laneway.emit(p_seqs, 'progressed', v_now);
    end if;
end $$;
