-- Repairs of waiting jobs after manual changes of the tables, or a restore of some of them.

-- Waiting jobs that nothing would release, among p_look of them after p_after. `fault`: edges, wait (of its handler) or
-- event. Each transaction changes edges, countdown and arrivals together, so one snapshot shows no fault unless the tables
-- were changed by hand. A last row without a fault tells where it ended, if there may be more jobs. It looks at none while
-- there are many arrivals, which are read for each job: then that row has p_after.
create or replace function laneway.stuck_waits(p_after bigint, p_look integer)
returns table (seq bigint, id uuid, fault text)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_nestloop = on
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    v_last   bigint;
    v_looked integer;
begin
    if (select true from laneway.arrivals offset 1000 limit 1) then
        seq := p_after;
        return next;
        return;
    end if;
    select max(x.seq), count(*) into v_last, v_looked
      from (select w.seq from laneway.waiting w where w.seq > p_after order by w.seq limit p_look) x;
    return query
    select f.seq, (select j.id from laneway.jobs j where j.seq = f.seq), f.fault
      from (select w.seq, case
                when w.reason in ('jobs', 'sub_jobs') then laneway.fault_of_edges(w.seq)
                when w.reason = 'event' then laneway.fault_of_event(w.seq, w.name) end as fault
              from laneway.waiting w where w.seq > p_after and w.seq <= v_last) f
     where f.fault is not null
     order by f.seq;
    if v_looked = p_look then
        seq := v_last;
        id := null;
        fault := null;
        return next;
    end if;
end $$;

-- Ended jobs whose edge to this waiting one was never followed. Not those that failed before it was retried: then it waits
-- until they are retried too. Their ends are followed in a later transaction than the one that began the wait.
create or replace function laneway.unfollowed_ends(p_seq bigint) returns setof bigint
language sql stable
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
    select x.parent from laneway.open_edges x
     cross join lateral (select o.status, o.finished_at from laneway.outcome o where o.seq = x.parent offset 0) o
     where x.child = p_seq
       and (o.status = 'completed' or x.rule = 'run' or (x.rule = 'cancel' and o.finished_at >= (
            select w.since from laneway.waiting w where w.seq = p_seq)))
       and (select true from laneway.arrivals y where y.kind = 'ended' and y.seq = x.parent limit 1) is null
$$;

-- `edges`, if the countdown of a waiting job differs from its open edges and arrivals, or if the end of a job that it comes
-- after was never followed.
create or replace function laneway.fault_of_edges(p_seq bigint) returns text
language sql stable
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
    select case when coalesce(c.missing, 0) <> e.n + coalesce(a.n, 0) or (c.missing is null and a.n is null) then 'edges'
                when exists (select from laneway.unfollowed_ends(p_seq)) then 'edges' end
      from (select count(*) as n from laneway.open_edges x where x.child = p_seq) e
     cross join (select sum(y.n) as n from laneway.arrivals y where y.kind in ('counted', 'retried') and y.seq = p_seq) a
      left join laneway.countdowns c on c.seq = p_seq
$$;

-- `wait`, if the wait of a job for an event is gone or done; `event`, if one was sent that it did not get.
create or replace function laneway.fault_of_event(p_seq bigint, p_name text) returns text
language sql stable
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
    select case when h.seq is null or h.done_at is not null then 'wait'
                -- A look that follows a commit may still deliver it.
                when (select true from laneway.event_checks limit 1) is null and exists (
                    select from laneway.sent_events e
                     where e.workspace = h.workspace and e.name = h.event and e.key = h.key
                       and e.expires_at > clock_timestamp()
                       and (select true from laneway.handler_waits t
                             where t.seq = p_seq and t.event_id = e.id limit 1) is null)
                then 'event' end
      from (select) one left join laneway.handler_waits h on h.seq = p_seq and h.name = p_name
$$;

-- Releases or corrects such jobs, among p_look waiting ones after p_after. Skips locked jobs. `after`: where to continue,
-- null at the end; `job_types`: those of jobs that can be claimed now.
create or replace function laneway.mend_waits(
    p_after bigint, p_look integer, out mended integer, out after bigint, out job_types text[])
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_stuck record;
    v_wakes text[] := '{}';
begin
    mended := 0;
    for v_stuck in select * from laneway.stuck_waits(p_after, p_look) loop
        if v_stuck.fault is null then
            after := v_stuck.seq;
            continue;
        end if;
        perform from laneway.waiting w where w.seq = v_stuck.seq for update skip locked;
        continue when not found;
        if v_stuck.fault = 'edges' then
            v_wakes := v_wakes || laneway.mend_edges(v_stuck.seq);
        elsif v_stuck.fault = 'event' then
            v_wakes := v_wakes || array(select d.job_type from laneway.deliver_to(array[v_stuck.seq], clock_timestamp()) d);
        else
            -- Its handler asks again.
            v_wakes := v_wakes || array(
                select r.job_type from laneway.release_waiting(array[v_stuck.seq], clock_timestamp()) r);
        end if;
        mended := mended + 1;
    end loop;
    job_types := array(select distinct t from unnest(v_wakes) t where t is not null);
end $$;

-- Corrects the edges and the countdown of a waiting job that the caller has locked; returns its type if it is released.
-- Lost edges come back by its link, except those of completed jobs: so it never starts too early.
create or replace function laneway.mend_edges(p_seq bigint) returns text[]
language plpgsql volatile
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
    v_missing integer;
begin
    -- With its row locked, each end that is not committed leaves an arrival.
    perform from laneway.countdowns c where c.seq = p_seq for update skip locked;
    if not found and exists (select from laneway.countdowns c where c.seq = p_seq) then return '{}'; end if;
    if (select coalesce(max(c.missing), 0) from laneway.countdowns c where c.seq = p_seq)
       <> (select count(*) from laneway.open_edges e where e.child = p_seq)
        + (select coalesce(sum(a.n), 0) from laneway.arrivals a where a.kind in ('counted', 'retried') and a.seq = p_seq)
       or not exists (select from laneway.countdowns c where c.seq = p_seq) then
        insert into laneway.open_edges (parent, child, rule)
        select distinct p.seq, p_seq, p.rule
          from (select unnest(l.parents) as seq, l.after_failure as rule
                  from laneway.waiting w join laneway.links l on l.seq = w.seq where w.seq = p_seq and w.reason = 'jobs'
                union all
                select unnest(h.subjects), 'run'
                  from laneway.waiting w join laneway.handler_waits h on h.seq = w.seq and h.name = w.name
                 where w.seq = p_seq and w.reason = 'sub_jobs') p
         cross join lateral (select b.seq from laneway.jobs b where b.seq = p.seq offset 0) j
          left join lateral (select o.status from laneway.outcome o where o.seq = p.seq offset 0) o on true
         where o.status is null or (o.status <> 'completed' and p.rule <> 'run')
        on conflict do nothing;
    end if;
    insert into laneway.arrivals (kind, seq) select distinct 'ended', u from laneway.unfollowed_ends(p_seq) u;
    select (select count(*) from laneway.open_edges e where e.child = p_seq)
         + (select coalesce(sum(a.n), 0) from laneway.arrivals a where a.kind in ('counted', 'retried') and a.seq = p_seq) into v_missing;
    if v_missing > 0 then
        insert into laneway.countdowns as c (seq, missing) values (p_seq, v_missing)
        on conflict (seq) do update set missing = excluded.missing;
        return '{}';
    end if;
    delete from laneway.countdowns c where c.seq = p_seq;
    return array(select r.job_type from laneway.release_waiting(array[p_seq], clock_timestamp()) r);
end $$;
