-- Repairs after manual changes of the tables.

-- Counters that differ from their rows: slots by lane and worker, limits by name and worker. Each counter changes
-- in the transaction that adds or removes a row, so one snapshot shows no difference unless the tables were changed
-- by hand.
create or replace function laneway.wrong_counters()
returns table (kind text, name text, worker_id uuid)
language sql stable as $$
    with held as materialized (
        select l.lane, l.worker_id, l.limits from laneway.lease l
        union all
        select f.lane, f.worker_id, f.limits from laneway.self_finished f
        union all
        select null, h.holder, h.names from laneway.limit_holds h
    )
    select 'slot', coalesce(h.lane, u.lane), coalesce(h.worker_id, u.worker_id)
      from (select x.lane, x.worker_id, count(*)::integer as n from held x where x.lane is not null group by 1, 2) h
      full join laneway.slots_held u on u.lane = h.lane and u.worker_id = h.worker_id
     where coalesce(h.n, 0) <> coalesce(u.running, 0)
    union all
    select 'limit', coalesce(h.name, u.limit_name), coalesce(h.worker_id, u.worker_id)
      from (select m as name, x.worker_id, count(*)::integer as n from held x cross join unnest(x.limits) m group by 1, 2) h
      full join laneway.limits_held u on u.limit_name = h.name and u.worker_id = h.worker_id
     where coalesce(h.n, 0) <> coalesce(u.running, 0)
$$;

-- Corrects those counters and those of quotas; returns how many. Locks each counter, then counts its leases again
-- in the next statement: a concurrent change waits for that lock, and adds or subtracts afterwards.
create or replace function laneway.recount() returns integer
language plpgsql volatile
set lock_timeout = '2s'
as $$
declare
    r record;
    v_n integer := 0;
begin
    for r in select m.kind, m.name, m.worker_id from laneway.wrong_counters() m
              order by m.kind = 'limit', case when m.kind = 'slot' then m.name end collate "C", m.worker_id, m.name collate "C" loop
        if r.kind = 'slot' then
            insert into laneway.slot_holders (lane, worker_id) values (r.name, r.worker_id) on conflict do nothing;
            perform laneway.count_slots(r.name, r.worker_id, 0);
            update laneway.slot_counts u
               set running = (select count(*) from laneway.lease l where l.lane = r.name and l.worker_id = r.worker_id)
                           + (select count(*) from laneway.self_finished f where f.lane = r.name and f.worker_id = r.worker_id)
             where u.lane = r.name and u.worker_id = r.worker_id;
        else
            insert into laneway.limit_holders (limit_name, worker_id) values (r.name, r.worker_id) on conflict do nothing;
            perform laneway.count_limits(r.name, r.worker_id, 0);
            update laneway.limit_counts u
               set running = (select count(*) from laneway.lease l cross join unnest(l.limits) m
                               where m = r.name and l.worker_id = r.worker_id)
                           + (select count(*) from laneway.self_finished f cross join unnest(f.limits) m
                               where m = r.name and f.worker_id = r.worker_id)
                           + (select count(*) from laneway.limit_holds h cross join unnest(h.names) m
                               where m = r.name and h.holder = r.worker_id)
             where u.limit_name = r.name and u.worker_id = r.worker_id;
        end if;
        v_n := v_n + 1;
    end loop;
    return v_n + laneway.recount_queued();
end $$;

-- Jobs without a state, neither waiting nor running nor ended, in order: p_limit of them after p_after.
create or replace function laneway.lost_jobs(p_after bigint, p_limit integer)
returns table (seq bigint, id uuid)
language sql stable as $$
    select j.seq, j.id from laneway.jobs j
     where j.seq > p_after
       and not exists (select from laneway.outcome x where x.seq = j.seq)
       and not exists (select from laneway.lease x where x.seq = j.seq)
       and not exists (select from laneway.ready x where x.seq = j.seq)
       and not exists (select from laneway.delayed x where x.seq = j.seq)
       and not exists (select from laneway.key_waiters x where x.seq = j.seq)
       and not exists (select from laneway.awaiting x where x.seq = j.seq)
       and not exists (select from laneway.waiting x where x.seq = j.seq)
     order by j.seq limit p_limit
$$;

-- The same among p_look jobs after p_after, each looked up by index. A last row without an id tells where it ended, if
-- there may be more jobs.
create or replace function laneway.look_for_lost(p_after bigint, p_look integer)
returns table (seq bigint, id uuid)
language plpgsql stable
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_sort = off
set jit = off
as $$
#variable_conflict use_column
declare
    v_last   bigint;
    v_looked integer;
begin
    select max(x.seq), count(*) into v_last, v_looked
      from (select j.seq from laneway.jobs j where j.seq > p_after order by j.seq limit p_look) x;
    return query
    select j.seq, j.id from laneway.jobs j
     where j.seq > p_after and j.seq <= v_last
       and not exists (select from laneway.outcome x where x.seq = j.seq)
       and not exists (select from laneway.lease x where x.seq = j.seq)
       and not exists (select from laneway.ready x where x.seq = j.seq)
       and not exists (select from laneway.delayed x where x.seq = j.seq)
       and not exists (select from laneway.key_waiters x where x.seq = j.seq)
       and not exists (select from laneway.awaiting x where x.seq = j.seq)
       and not exists (select from laneway.waiting x where x.seq = j.seq)
     order by j.seq;
    if v_looked = p_look then
        seq := v_last;
        id := null;
        return next;
    end if;
end $$;

-- Lost jobs among the newest p_newest, and p_each jobs at each of p_places spread over all numbers. is_whole: these are
-- all jobs. One row without an id if none is lost.
create or replace function laneway.sample_lost(p_newest integer, p_places integer, p_each integer)
returns table (id uuid, is_whole boolean)
language plpgsql stable
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
declare
    v_low   bigint := (select j.seq from laneway.jobs j order by j.seq limit 1);
    v_after bigint := (select j.seq from laneway.jobs j order by j.seq desc offset p_newest limit 1);
begin
    return query
    select x.id, v_after is null
      from (select 1) one
      left join lateral (
        select l.seq, l.id from laneway.look_for_lost(coalesce(v_after, v_low - 1, 0), p_newest) l where l.id is not null
        union
        select l.seq, l.id from generate_series(0, p_places - 1) g
         cross join lateral laneway.look_for_lost(v_low - 1 + g * (v_after - v_low + 1) / p_places, p_each) l
         where l.id is not null and v_after is not null) x on true
     order by x.seq;
end $$;

-- Fails lost jobs, so that they can be retried, and frees their keys: p_limit of them, or the lost ones of p_seqs.
-- Returns their ids.
create or replace function laneway.end_lost(p_limit integer, p_seqs bigint[] default null)
returns setof uuid
language plpgsql volatile as $$
declare
    v_seqs bigint[];
begin
    if p_seqs is null then
        v_seqs := array(select x.seq from laneway.lost_jobs(0, p_limit) x);
    else
        v_seqs := array(select x.seq from unnest(p_seqs) s cross join lateral laneway.look_for_lost(s - 1, 1) x
                         where x.seq = s and x.id is not null);
    end if;
    if v_seqs = '{}' then return; end if;
    with ended as (
        insert into laneway.outcome (seq, status, workspace, job_type, priority, attempt, retries, finished_at, error,
                                     error_type)
        select j.seq, 'failed', j.workspace, j.job_type, j.priority,
               -- Never the number of an earlier attempt.
               1 + greatest(0, (select max(a.attempt) from laneway.attempts a where a.seq = j.seq),
                            (select p.attempt from laneway.progress p where p.seq = j.seq)),
               0, clock_timestamp(), '{"type": "Lost", "message": "the database lost the state of this job, and `laneway db repair` ended it: retry it to let it run again", "public": true}'::jsonb,
               'Lost'
          from laneway.jobs j where j.seq = any (v_seqs)
        on conflict do nothing
        returning outcome.seq
    )
    -- Not those that another repair ended meanwhile: their ends count once.
    select array_agg(e.seq) into v_seqs from ended e;
    if v_seqs is null then return; end if;
    delete from laneway.job_keys k where k.seq = any (v_seqs);
    perform laneway.emit(v_seqs, 'settled');
    perform laneway.wake(array(select coalesce(n.job_type, '') from laneway.note_ends(v_seqs) n));
    return query select j.id from laneway.jobs j where j.seq = any (v_seqs) order by j.seq;
end $$;
