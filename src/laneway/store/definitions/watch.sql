-- Takes or renews leadership; the epoch grows with every new holder. Null: somebody else leads.
create or replace function laneway.lead(p_holder uuid, p_ttl_s double precision, p_now timestamptz default null)
returns bigint language plpgsql volatile as $$
declare
    v_now timestamptz := coalesce(p_now, clock_timestamp());
    v_epoch bigint;
begin
    insert into laneway.leader as r (name, holder, epoch, held_until)
    values ('leader', p_holder, 1, v_now + make_interval(secs => p_ttl_s))
    on conflict (name) do update
       set epoch = r.epoch + (r.holder <> excluded.holder)::integer, holder = excluded.holder,
           held_until = excluded.held_until
     where r.holder = excluded.holder or r.held_until < v_now
    returning r.epoch into v_epoch;
    return v_epoch;
end $$;

-- The watchdog's pass: renews leadership, then takes back lapsed and stalled leases of one lane, so
-- that two passes never lock slot counters in different order. Null epoch: not the leader, nothing
-- done. `more`: call again at once. `has_duties`: some job is too old, has waited too long for its
-- approval, or ended in a handler's transaction and was not settled.
create or replace function laneway.watch(
    p_holder uuid, p_ttl_s double precision, p_limit integer, p_now timestamptz default null,
    out epoch bigint, out reclaimed integer, out job_types text[], out more boolean, out has_duties boolean)
language plpgsql volatile as $$
declare
    v_now      timestamptz := coalesce(p_now, clock_timestamp());
    v_lane     text;
    v_seqs     bigint[];
    v_attempts integer[];
    v_verdicts text[];
    v_errors   text[];
begin
    reclaimed := 0;
    more := false;
    epoch := laneway.lead(p_holder, p_ttl_s, p_now);
    if epoch is null then return; end if;
    has_duties := (select true from laneway.deadlines d where d.at <= v_now limit 1)
               or (select true from laneway.awaiting a where a.expires_at <= v_now limit 1)
               or (select true from laneway.self_finished limit 1);
    -- The lane of one that can be had: those that somebody holds must not hide the others.
    select o.lane into v_lane from laneway.overdue(v_now) o
     cross join lateral (select l.seq from laneway.lease l where l.seq = o.seq and l.attempt = o.attempt
                         offset 0 for update skip locked) l
     limit 1;
    if not found then return; end if;
    select array_agg(x.seq), array_agg(x.attempt), array_agg(x.verdict), array_agg(x.error), array_agg(distinct x.job_type)
      into v_seqs, v_attempts, v_verdicts, v_errors, job_types
      from (select o.* from laneway.overdue(v_now) o
             cross join lateral (select l.seq from laneway.lease l
                                  where l.seq = o.seq and l.attempt = o.attempt
                                    and case o.verdict when 'lost' then l.lease_until < v_now
                                        else coalesce(l.last_progress_at, l.claimed_at) = o.moved_at end
                                 offset 0 for update skip locked) l
             where o.lane = v_lane limit p_limit) x;
    if v_seqs is null then return; end if;
    job_types := job_types || array(
        select distinct s.status from laneway.settle(v_seqs, v_attempts, v_verdicts, null, v_errors, null, null, p_now) s
         where s.answer in ('promoted', 'freed'));
    reclaimed := cardinality(v_seqs);
    more := exists (select from laneway.overdue(v_now));
end $$;

-- Leases whose worker is silent, or whose work stands still where its type asks for progress.
create or replace function laneway.overdue(p_now timestamptz)
returns table (seq bigint, attempt integer, lane text, job_type text, moved_at timestamptz, verdict text, error text)
language sql stable as $$
    select l.seq, l.attempt, l.lane, l.job_type, coalesce(l.last_progress_at, l.claimed_at),
           case when l.lease_until < p_now then 'lost' else 'stalled' end,
           case when l.lease_until < p_now
                then json_build_object('public', true, 'type', 'WorkerLost', 'message',
                        format('worker lost: %s did not renew the lease of attempt %s',
                               coalesce(w.name, l.worker_id::text), l.attempt))::text
                else json_build_object('public', true, 'type', 'Stalled', 'message',
                        format('no progress for %s minutes', n.stale_timeout_minutes))::text end
      from laneway.lease l
      left join laneway.workers w on w.id = l.worker_id
      left join laneway.job_types t on t.name = l.job_type
      left join laneway.worker_lanes n on n.name = l.lane
     where l.lease_until < p_now
        or (t.stale = 'progress' and coalesce(l.last_progress_at, l.claimed_at)
                                     < p_now - make_interval(mins => n.stale_timeout_minutes))
$$;

-- Ends what a dead worker process held. One that died by itself: all are charged as lost, for any may
-- have killed it. One that was killed because its event loop hung: the culprit is charged; if none is
-- known, what ran in its threads, which alone can hang a loop from outside, and analyses. The rest goes back without
-- charge. Only its supervisor may know that it is dead.
create or replace function laneway.bury(p_worker uuid, p_hung boolean, p_culprit bigint, p_message text)
returns integer language plpgsql volatile as $$
declare
    v_seqs bigint[];
    v_attempts integer[];
    v_charged boolean[];
    v_n integer;
begin
    select array_agg(x.seq), array_agg(x.attempt), array_agg(x.charged) into v_seqs, v_attempts, v_charged
      from (select l.seq, l.attempt, not p_hung or l.seq = p_culprit
                   or (p_culprit is null and (l.job_type like E'\x01%' or exists (
                        select from laneway.job_types t where t.name = l.job_type and t.isolation = 'thread'))) as charged
              from laneway.lease l where l.worker_id = p_worker order by l.seq for update skip locked) x;
    v_n := coalesce(cardinality(v_seqs), 0);
    if v_n > 0 then
        perform laneway.wake(array(select s.status from laneway.settle(v_seqs, v_attempts,
            array(select case when c then 'lost' else 'release' end from unnest(v_charged) with ordinality u (c, n) order by n),
            null,
            array(select case when c then json_build_object('public', true, 'type', 'WorkerLost', 'message', p_message)::text end
                    from unnest(v_charged) with ordinality u (c, n) order by n),
            null, null) s where s.answer in ('promoted', 'freed')));
    end if;
    update laneway.workers w set stopped_at = clock_timestamp() where w.id = p_worker;
    return v_n;
end $$;
