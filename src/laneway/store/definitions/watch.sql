-- Takes or renews leadership; the epoch grows with every new holder. Null: another process is the leader.
create or replace function laneway.take_leadership(
    p_holder uuid, p_ttl_s double precision, p_now timestamptz default null)
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
           -- No lease ends that far in the future: the clock was set back, and that leader may be gone.
           or r.held_until > excluded.held_until
                             + greatest(interval '5 minutes', make_interval(secs => 10 * p_ttl_s))
    returning r.epoch into v_epoch;
    return v_epoch;
end $$;

-- A pass of the watchdog: renews leadership, then reclaims lapsed and stalled leases of one lane, so that two
-- passes lock slot counters in the same order. Null epoch: not the leader, nothing done. `more`: call again at
-- once. `has_duties`: some job is overaged, its approval expired, or it ended in a handler's transaction and was
-- not settled; a limit held outside of jobs lapsed; or ends of jobs left work behind. `lost`: up to five of the reclaimed attempts, for the log.
create or replace function laneway.run_watchdog(
    p_holder uuid, p_ttl_s double precision, p_limit integer, p_now timestamptz default null,
    out epoch bigint, out reclaimed integer, out job_types text[], out more boolean, out has_duties boolean,
    out lost jsonb)
language plpgsql volatile as $$
declare
    v_now      timestamptz := coalesce(p_now, clock_timestamp());
    v_lane     text;
    v_seqs     bigint[];
    v_attempts integer[];
    v_verdicts text[];
    v_errors   text[];
    v_workers  uuid[];
    v_crowded  bigint[];
    v_crowders uuid[];
    v_spared   bigint[];
    v_unreceived bigint[];
begin
    reclaimed := 0;
    more := false;
    epoch := laneway.take_leadership(p_holder, p_ttl_s, p_now);
    if epoch is null then return; end if;
    has_duties := (select true from laneway.deadlines d where d.at <= v_now limit 1)
               or (select true from laneway.awaiting a where a.expires_at <= v_now limit 1)
               or (select true from laneway.self_finished limit 1)
               or (select true from laneway.arrivals limit 1) or (select true from laneway.flow_tallies limit 1)
               or (select true from laneway.limit_holds h where h.lease_until < v_now limit 1);
    -- The lane of an unlocked one: locked leases must not hide the others.
    select o.lane into v_lane from laneway.overdue_leases(v_now) o
     cross join lateral (select l.seq from laneway.lease l where l.seq = o.seq and l.attempt = o.attempt
                         offset 0 for update skip locked) l
     limit 1;
    if not found then return; end if;
    select array_agg(x.seq), array_agg(x.attempt), array_agg(x.verdict), array_agg(x.error), array_agg(distinct x.job_type),
           array_agg(x.worker_id)
      into v_seqs, v_attempts, v_verdicts, v_errors, job_types, v_workers
      from (select o.*, l.worker_id from laneway.overdue_leases(v_now) o
             cross join lateral (select l.seq, l.worker_id from laneway.lease l
                                  where l.seq = o.seq and l.attempt = o.attempt
                                    and case o.verdict when 'lost' then l.lease_until < v_now
                                        else coalesce(l.last_progress_at, l.claimed_at) = o.moved_at end
                                 offset 0 for update skip locked) l
             where o.lane = v_lane limit p_limit) x;
    if v_seqs is null then return; end if;
    -- Lost together with others of the same worker: any of them may be the cause.
    with given as materialized (
        select * from unnest(v_seqs, v_workers, v_verdicts) as g (seq, worker, verdict) where g.verdict = 'lost'
    ), renewed as materialized (
        select l.seq, l.worker_id, l.lease_seconds, l.lease_until - make_interval(secs => l.lease_seconds) as at
          from laneway.lease l where l.worker_id = any (array(select g.worker from given g))
    ), earliest as materialized (
        select r.worker_id, array_agg(r.at order by r.at) as times from
               (select r.*, row_number() over (partition by r.worker_id order by r.at) as place from renewed r) r
         where r.place <= 2 group by r.worker_id
    )
    -- A worker renews each lease several times before it lapses. Another lease that was renewed half a lease later
    -- than this one shows that the worker was still alive: then this one was lost alone.
    select array_agg(g.seq), array_agg(g.worker) into v_crowded, v_crowders
      from given g join renewed r on r.seq = g.seq join earliest e on e.worker_id = g.worker
     where e.times[2] <= r.at + make_interval(secs => r.lease_seconds / 2.0)
        or exists (select from laneway.suspects s where s.lost_with = g.worker and s.seq <> g.seq);
    -- Never renewed, although its worker was alive later: the answer of the claim was lost on its way, or the replica
    -- that claimed for a remote worker died first. Its handler never began. Charged after twenty times, so that no job
    -- is lost without end.
    v_unreceived := array(
        select l.seq from laneway.lease l left join laneway.workers w on w.id = l.worker_id
         where l.seq = any (v_seqs) and l.lease_until = l.claimed_at + make_interval(secs => l.lease_seconds)
           and l.lease_until < v_now and l.last_progress_at is null and l.attempt - l.retries <= 20
           and (w.seen_at > l.claimed_at + make_interval(secs => l.lease_seconds / 2.0)
                -- A remote worker is seen when it connects again and names the attempts that it holds.
                or (w.transport = 'grpc' and w.seen_at > l.claimed_at)
                or exists (select from laneway.lease o where o.worker_id = l.worker_id
                              and o.lease_until - make_interval(secs => o.lease_seconds)
                                  > l.claimed_at + make_interval(secs => l.lease_seconds / 2.0))));
    if v_crowded is not null then
        select array_agg(c.seq), array_agg(c.worker) into v_crowded, v_crowders
          from unnest(v_crowded, v_crowders) as c (seq, worker) where c.seq <> all (v_unreceived);
        v_spared := array(select laneway.record_shared_loss(v_crowded, v_crowders));
    end if;
    if v_spared <> '{}' or v_unreceived <> '{}' then
        select array_agg(case when u.note is not null then 'spared' else u.verdict end order by u.n),
               array_agg(case when u.note is not null
                              then jsonb_set(u.error::jsonb, '{message}', to_jsonb(
                                       (u.error::jsonb ->> 'message') || '; not charged: ' || u.note))::text
                              else u.error end order by u.n)
          into v_verdicts, v_errors
          from (select g.*, case when g.seq = any (v_unreceived) then 'its worker never received it'
                                 when g.seq = any (v_spared) then 'others were lost with it' end as note
                  from unnest(v_seqs, v_verdicts, v_errors) with ordinality as g (seq, verdict, error, n)) u;
    end if;
    job_types := job_types || array(
        select distinct s.status from laneway.settle(v_seqs, v_attempts, v_verdicts, null, v_errors, null, null, p_now) s
         where s.answer in ('promoted', 'freed'));
    reclaimed := cardinality(v_seqs);
    lost := (select jsonb_agg(jsonb_build_array(j.job_type, j.id, u.attempt, coalesce(w.name, u.worker::text),
                                                case when u.verdict = 'stalled' then u.error::jsonb ->> 'message' end,
                                                x.status) order by u.n)
               from unnest(v_seqs[:5], v_attempts[:5], v_workers[:5], v_verdicts[:5], v_errors[:5])
                    with ordinality as u (seq, attempt, worker, verdict, error, n)
               join laneway.jobs j on j.seq = u.seq
               left join laneway.workers w on w.id = u.worker
               left join laneway.outcome x on x.seq = u.seq);
    more := exists (select from laneway.overdue_leases(v_now));
end $$;

-- Leases whose worker is silent, or which lack progress where their type requires it.
create or replace function laneway.overdue_leases(p_now timestamptz)
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

-- Records that these jobs were lost together with others, and returns those not charged: a job that was lost five
-- times this way is charged. So no job is lost without end.
create or replace function laneway.record_shared_loss(p_seqs bigint[], p_workers uuid[])
returns setof bigint language sql volatile as $$
    insert into laneway.suspects as s (seq, losses, lost_with)
    select g.seq, 1, g.worker from unnest(p_seqs, p_workers) as g (seq, worker) order by g.seq
    on conflict (seq) do update
       set losses = s.losses + 1, lost_with = excluded.lost_with, lost_at = clock_timestamp()
     where s.losses < 5
    returning s.seq
$$;

-- Ends the attempts of a dead worker process. The culprit is charged: the job that blocked the event loop, or the
-- only one whose handler had begun. If it is unknown, all that had begun are suspects and none is charged, within
-- the bound of laneway.record_shared_loss. The others return at once.
-- p_began: jobs whose handlers had begun; null: all of them. p_hung: killed because its event loop hung, which
-- only the culprit, threads and analyses can cause. Only its supervisor can know that the process is dead.
create or replace function laneway.fail_worker(
    p_worker uuid, p_hung boolean, p_culprit bigint, p_message text, p_began bigint[] default null)
returns integer language plpgsql volatile as $$
declare
    v_seqs     bigint[];
    v_attempts integer[];
    v_suspects bigint[];
    v_culprit  bigint := p_culprit;
    v_spared   bigint[];
    v_note     text := '; not charged: another job was the cause';
    v_n        integer;
begin
    select array_agg(x.seq), array_agg(x.attempt), array_agg(x.seq) filter (where x.is_suspect)
      into v_seqs, v_attempts, v_suspects
      from (select l.seq, l.attempt,
                   (p_began is null or l.seq = any (p_began) or l.seq = p_culprit)
                   and (not p_hung or l.seq = p_culprit or l.job_type like E'\x01%' or exists (
                        select from laneway.job_types t where t.name = l.job_type and t.isolation = 'thread')) as is_suspect
              from laneway.lease l where l.worker_id = p_worker order by l.seq for update skip locked) x;
    v_n := coalesce(cardinality(v_seqs), 0);
    if v_n > 0 then
        if v_culprit is null and cardinality(v_suspects) = 1 then v_culprit := v_suspects[1]; end if;
        -- None had begun: it died of something else, but one of them may be the cause.
        v_suspects := coalesce(v_suspects, v_seqs);
        if v_culprit is null then
            v_spared := array(select laneway.record_shared_loss(
                v_suspects, array_fill(p_worker, array[cardinality(v_suspects)])));
            v_note := format('; not charged: one of %s jobs lost together', cardinality(v_suspects));
        end if;
        perform laneway.wake(array(
            select s.status
              from (select array_agg(g.seq) as seqs, array_agg(g.attempt) as attempts,
                           array_agg(case when g.free then 'spared' else 'lost' end) as verdicts,
                           array_agg(json_build_object('public', true, 'type', 'WorkerLost', 'message',
                                                       p_message || case when g.free then v_note else '' end)::text) as errors,
                           array_agg(case when g.free and not g.waits then 0.0::double precision end) as delays
                      from (select u.seq, u.attempt, v_culprit is null and u.seq = any (v_suspects) as waits,
                                   case when v_culprit is not null then u.seq <> v_culprit
                                        else u.seq <> all (v_suspects) or u.seq = any (v_spared) end as free
                              from unnest(v_seqs, v_attempts) as u (seq, attempt)) g) b
             cross join lateral laneway.settle(b.seqs, b.attempts, b.verdicts, null, b.errors, b.delays, null) s
             where s.answer in ('promoted', 'freed')));
    end if;
    update laneway.workers w set stopped_at = clock_timestamp() where w.id = p_worker;
    return v_n;
end $$;

-- How often each of these jobs was lost together with others and not charged, in the order given; null: none ever
-- was. Volatile, so that it sees the same as the claim before it in the same statement.
create or replace function laneway.losses_of(p_seqs bigint[])
returns integer[] language sql volatile as $$
    select case when exists (select from laneway.suspects)
                then array(select coalesce((select s.losses from laneway.suspects s where s.seq = u.seq), 0)
                             from unnest(p_seqs) with ordinality as u (seq, n) order by u.n) end
$$;
