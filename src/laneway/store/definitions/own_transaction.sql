-- Both run in the handler's own transaction, on its connection. They take no lock that a claim needs: slots,
-- limits and keys are released later, from self_finished. With their owner's rights: a handler's connection can
-- end the attempt that it names, and nothing else.

-- Locks the lease of an attempt until the caller's transaction ends: the job cannot be reclaimed before, while
-- heartbeats continue. Returns held, cancel_requested or fenced, and the id of the transaction.
create or replace function laneway.guard(p_seq bigint, p_attempt integer, out answer text, out xid text)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_cancel boolean;
begin
    select l.cancel_requested_at is not null into v_cancel from laneway.lease l
     where l.seq = p_seq and l.attempt = p_attempt for key share;
    answer := case when not found then 'fenced' when v_cancel then 'cancel_requested' else 'held' end;
    xid := pg_current_xact_id()::text;
end $$;

-- Completes the job if the attempt is the running one and no cancel is requested: the caller's rows and the end
-- of the job are committed together or not at all. Returns finished, cancel_requested or fenced; only finished
-- writes something.
create or replace function laneway.finish_in_transaction(
    p_seq bigint, p_attempt integer, p_result text, p_ran_s double precision)
returns text language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
    v_now timestamptz := clock_timestamp();
    v_lease laneway.lease;
begin
    delete from laneway.lease l
     where l.seq = p_seq and l.attempt = p_attempt and l.cancel_requested_at is null
    returning l.* into v_lease;
    if not found then
        perform from laneway.lease l where l.seq = p_seq and l.attempt = p_attempt;
        return case when found then 'cancel_requested' else 'fenced' end;
    end if;
    if v_lease.job_type like E'\x01%' then
        raise exception using errcode = 'LW001', message = 'finish: an analysis does not finish its job, it returns an Analysis';
    end if;
    insert into laneway.outcome (seq, status, workspace, job_type, priority, attempt, retries, lane, worker_id,
                                 claimed_at, started_at, finished_at, result)
    values (v_lease.seq, 'completed', v_lease.workspace, v_lease.job_type, -v_lease.rank, v_lease.attempt,
            v_lease.retries, v_lease.lane, v_lease.worker_id, v_lease.claimed_at,
            coalesce(v_lease.started_at, v_now - make_interval(secs => p_ran_s)), v_now, p_result::jsonb);
    if v_lease.keyed then
        delete from laneway.job_keys k using laneway.jobs j
         where j.seq = p_seq and k.workspace = v_lease.workspace and k.job_type = v_lease.job_type
           and k.unique_key = j.unique_key and k.seq = p_seq;
    end if;
    insert into laneway.self_finished (seq, attempt, lane, worker_id, workspace, concurrency_key, limits)
    values (v_lease.seq, v_lease.attempt, v_lease.lane, v_lease.worker_id, v_lease.workspace,
            v_lease.concurrency_key, v_lease.limits);
    -- Locks nothing: laneway.advance satisfies its edges after the commit.
    if v_lease.flow is not null then
        insert into laneway.flow_tallies (flow, completed, ended_at) values (v_lease.flow, 1, v_now);
    end if;
    if exists (select from laneway.open_edges e where e.parent = p_seq)
       -- The snapshot may be older than an edge.
       or current_setting('transaction_isolation') <> 'read committed' then
        insert into laneway.arrivals (kind, seq) values ('ended', p_seq);
    end if;
    if exists (select from laneway.end_hooks) then
        perform laneway.submit_end_hooks(array[p_seq]);
    end if;
    perform laneway.emit(array[p_seq], 'finished');
    return 'finished';
end $$;
