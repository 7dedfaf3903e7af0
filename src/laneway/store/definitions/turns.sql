-- Who waits for a limit, in limit_waiters: a lane of a worker for its next job (kind claim), or its calls
-- (kind call). Higher priority first, then lane by lane in rounds, then who has waited longest. A lane keeps
-- its place for as many starts as its slots could use of the limit, at most the limit itself.
-- Who is first is called and left room for. Who does not come within 300 ms is passed over until it asks again, so
-- the dead hold nobody up: many of them no longer than two. Waiters of equal priority are left room for once they have waited 20 ms: every
-- change of turns costs a wake-up.
-- Rows are written last, behind usage, each by its worker; those of others only if nobody has them locked,
-- or in order behind the lock on the limit.

-- Whether room is left for a waiter: it was not passed over, and its lane could take a job now.
create or replace function laneway.can_come(p laneway.limit_waiters, p_now timestamptz) returns boolean
language sql stable as $$
    select (p.called_at is null or p.called_at > p_now - interval '300 ms')
       and not (p.kind = 'claim' and exists (
           select from laneway.worker_lanes l
            where l.name = p.lane and (not l.enabled or l.max_slots <= (
                  select coalesce(sum(u.running), 0) from laneway.slots_held u where u.lane = p.lane))))
$$;

-- How much of the room of a limit one may take now, null for all of it. p_rank: of the first that it would start.
create or replace function laneway.turn_room(
    p_limit text, p_room integer, p_lane text, p_worker uuid, p_kind text, p_rank integer, p_now timestamptz)
returns integer language plpgsql stable as $$
declare
    v_site   text;
    v_mine   record;
    v_others record;
begin
    select laneway.site_of(l.scope, p_worker) into v_site from laneway.limits l where l.name = p_limit;
    select coalesce(max(w.lane_since), p_now) as lane_since,
           coalesce(max(w.since) filter (where w.worker_id = p_worker and w.kind = p_kind), p_now) as since
      into v_mine from laneway.limit_waiters w where w.limit_name = p_limit and w.lane = p_lane;
    select count(*) filter (where w.rank < p_rank) as higher,
           count(*) filter (where w.rank = p_rank and w.since <= p_now - interval '20 ms'
                              and (w.lane_since, w.since) < (v_mine.lane_since, v_mine.since)) as ahead,
           array_agg(distinct w.lane) filter (where w.rank = p_rank) as lanes
      into v_others
      from laneway.limit_waiters w
     where w.limit_name = p_limit and w.site = v_site
       and (w.lane, w.worker_id, w.kind) <> (p_lane, p_worker, p_kind)
       -- Claims of one lane take its jobs in order, whichever worker comes.
       and not (w.lane = p_lane and w.kind = 'claim' and p_kind = 'claim' and w.rank >= p_rank)
       and laneway.can_come(w, p_now);
    if v_others.higher > 0 then return 0; end if;
    if v_others.lanes is null then return null; end if;
    return greatest(0, least(p_room - v_others.ahead, (
        select ceil(p_room * max(x.weight) filter (where x.lane = p_lane) / sum(x.weight))
          from (select n.lane, laneway.turn_weight(p_limit, n.lane)::numeric as weight
                  from unnest(v_others.lanes || p_lane) n (lane) group by n.lane) x)))::integer;
end $$;

-- How many starts a lane has in each round.
create or replace function laneway.turn_weight(p_limit text, p_lane text) returns integer language sql stable as $$
    select greatest(1, coalesce(least(max(w.max_slots), max(l.max_concurrent)), 1))
      from laneway.limits l left join laneway.worker_lanes w on w.name = p_lane where l.name = p_limit
$$;

-- Notes what one has started under limits, and for which it waits on: p_counts starts each; p_waits: it may
-- want more; p_yielded: limits whose room it left to others.
create or replace function laneway.keep_turns(
    p_worker uuid, p_lane text, p_kind text, p_names text[], p_ranks integer[], p_counts integer[], p_waits boolean[],
    p_yielded text[], p_now timestamptz)
returns void language plpgsql volatile as $$
declare
    r record;
    v_left text[];
    v_called uuid[];
begin
    for r in
        select g.name, min(g.rank) as rank, max(g.count) as count, bool_or(g.waits) as waits,
               exists (select from laneway.limit_waiters w
                        where w.limit_name = g.name and w.lane = p_lane and w.worker_id = p_worker
                          and w.kind = p_kind) as is_known,
               exists (select from laneway.limit_waiters w
                        where w.limit_name = g.name
                          and (w.lane, w.worker_id, w.kind) <> (p_lane, p_worker, p_kind)) as is_shared
          from unnest(p_names, p_ranks, p_counts, p_waits) as g (name, rank, count, waits)
         group by g.name order by g.name collate "C"
    loop
        if r.count > 0 and r.is_shared then
            update laneway.limit_waiters w
               set used = case when w.used + r.count < t.weight then w.used + r.count else 0 end,
                   lane_since = case when w.used + r.count < t.weight then w.lane_since else p_now end,
                   since = case when w.worker_id = p_worker and w.kind = p_kind then p_now else w.since end,
                   called_at = case when w.worker_id = p_worker and w.kind = p_kind then null else w.called_at end
              from (select laneway.turn_weight(r.name, p_lane) as weight) t
             where w.limit_name = r.name and w.lane = p_lane;
        end if;
        if r.waits then
            insert into laneway.limit_waiters as w (limit_name, lane, worker_id, kind, site, rank, lane_since, since)
            select l.name, p_lane, p_worker, p_kind, laneway.site_of(l.scope, p_worker), r.rank,
                   coalesce((select max(o.lane_since) from laneway.limit_waiters o
                              where o.limit_name = l.name and o.lane = p_lane), p_now), p_now
              from laneway.limits l
             where l.name = r.name and not (r.is_known and exists (
                   select from laneway.limit_waiters o
                    where o.limit_name = l.name and o.lane = p_lane and o.worker_id = p_worker and o.kind = p_kind
                      and o.rank = r.rank and o.called_at is null))
            on conflict (limit_name, lane, worker_id, kind) do update set rank = excluded.rank, called_at = null;
        elsif r.is_known then
            delete from laneway.limit_waiters w
             where w.limit_name = r.name and w.lane = p_lane and w.worker_id = p_worker and w.kind = p_kind;
            -- A call that was granted what it wanted leaves no room that is news.
            if p_kind = 'claim' or r.count is null then v_left := v_left || r.name; end if;
        end if;
    end loop;
    if p_yielded is not null then
        with first as materialized (
            select f.* from unnest(p_yielded) n (name)
              join laneway.limits l on l.name = n.name
             cross join lateral (
                select o.* from laneway.limit_waiters o
                 where o.limit_name = n.name and o.site = laneway.site_of(l.scope, p_worker)
                   and (o.lane, o.worker_id, o.kind) <> (p_lane, p_worker, p_kind)
                   and laneway.can_come(o, p_now)
                 order by o.rank, o.lane_since, o.since
                 -- Where one has just been passed over, more may be dead: all are called, and passed over together.
                 limit case when exists (
                     select from laneway.limit_waiters d
                      where d.limit_name = n.name and d.called_at > p_now - interval '2 s'
                        and d.called_at <= p_now - interval '300 ms') then 200 else 1 end
                   for update skip locked) f
        ), called as (
            update laneway.limit_waiters w set called_at = p_now from first f
             where w.limit_name = f.limit_name and w.lane = f.lane and w.worker_id = f.worker_id and w.kind = f.kind
               and w.called_at is null
            returning w.worker_id)
        select array_agg(c.worker_id) into v_called from called c;
        perform laneway.call_workers(v_called, p_worker);
    end if;
    if v_left is not null then
        perform laneway.call_next(v_left, p_worker);
    end if;
end $$;

-- One waits no longer for limits but those named: its jobs have gone another way.
create or replace function laneway.leave_turns(p_worker uuid, p_lane text, p_kind text, p_but text[])
returns void language plpgsql volatile as $$
declare
    v_left text[];
begin
    if exists (select from laneway.limit_waiters w where w.worker_id = p_worker) then
        -- Others of its lane write its rows too, behind limits that this one has not locked: it waits for none of
        -- them, and leaves when it asks next.
        with mine as materialized (
            select w.ctid as tid from laneway.limit_waiters w
             where w.worker_id = p_worker and w.lane = p_lane and w.kind = p_kind
               and w.limit_name <> all (coalesce(p_but, '{}'))
               for update skip locked
        ), gone as (
            delete from laneway.limit_waiters w where w.ctid = any (array(select m.tid from mine m))
            returning w.limit_name)
        select array_agg(g.limit_name) into v_left from gone g;
        if v_left is not null then
            perform laneway.call_next(v_left, p_worker);
        end if;
    end if;
end $$;

-- Wakes who is first in turn for limits that have room now where this worker is, unless it is the one that knows
-- already. Where it is may no longer be known: then anywhere.
create or replace function laneway.call_next(p_names text[], p_worker uuid) returns void
language sql volatile as $$
    select laneway.call_workers(array_agg(f.worker_id), p_worker)
      from (select l.name, laneway.site_of(l.scope, p_worker) as site from laneway.limits l where l.name = any (p_names)) n
     cross join lateral (select w.worker_id from laneway.limit_waiters w
                          where w.limit_name = n.name and (w.site = n.site or n.site = '')
                          order by w.rank, w.lane_since, w.since limit 2) f
$$;

create or replace function laneway.call_workers(p_workers uuid[], p_but uuid) returns void
language plpgsql volatile as $$
declare
    -- A message has room for some 200; the others come at their next poll.
    v_called text := (select string_agg(u.w::text, ' ')
                        from (select distinct w from unnest(p_workers) w where w <> p_but limit 200) u);
begin
    if v_called is not null then
        perform pg_notify('laneway', 'turn ' || v_called);
    end if;
end $$;

-- Who is next for a limit, for people: null where nobody waits.
create or replace function laneway.next_in_turn(p_limit text) returns jsonb language sql stable as $$
    select jsonb_build_object('lane', w.lane, 'priority', -w.rank, 'kind', w.kind)
      from laneway.limit_waiters w
     where w.limit_name = p_limit and laneway.can_come(w, clock_timestamp())
     order by w.rank, w.lane_since, w.since limit 1
$$;
