-- Turns at a limit. A waiter is a lane of a worker that waits for its next job (kind claim), or for its calls (kind
-- call). Higher priority goes first, then lane by lane in rounds, then the longest wait. A lane keeps its place for
-- as many starts as its slots could use of the limit, at most the limit itself.
-- The first waiter is called, and capacity is left for it. A waiter that does not start within 300 ms is skipped until
-- it asks again, so that dead waiters delay others only briefly: many of them no longer than two. Capacity is left for
-- waiters of equal priority once they have waited 20 ms, because every change of turns costs a wake-up.
-- limit_waiters lists them; its rows never change. The changing columns are in limit_turns, which moves like counters
-- (counters.sql): every 32 changes its `place` grows by one, and the highest place is read. A waiter that leaves keeps
-- its rows for a minute, because it may return with the next job. After that a new waiter deletes them, or one claim in a
-- hundred, or the sweep; a stopped worker deletes its own.
-- Rows are written last, after usage, each by its worker; rows of others only if they are not locked, or in order
-- while the limit is locked.

-- The current rows of limit_turns, each found by its highest place.
create or replace view laneway.turns_held as
select h.limit_name, h.lane, h.worker_id, h.kind, t.tid, t.waits, t.site, t.rank, t.used, t.lane_since, t.since, t.called_at
  from laneway.limit_waiters h
 cross join lateral (
    select x.ctid as tid, x.waits, x.site, x.rank, x.used, x.lane_since, x.since, x.called_at from laneway.limit_turns x
     where x.limit_name = h.limit_name and x.lane = h.lane and x.worker_id = h.worker_id and x.kind = h.kind
     order by x.place desc limit 1) t;

-- The waiters for these limits. The turn of a lane is one for all its waiters, the newest: a row that a worker
-- was writing meanwhile may have an older one.
create or replace function laneway.waiters_of(p_names text[]) returns setof laneway.limit_waiters
language plpgsql stable rows 10
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
    return query
    select t.limit_name, t.lane, t.worker_id, t.kind, t.site, t.rank, first_value(t.used) over newest,
           first_value(t.lane_since) over newest, t.since, t.called_at
      from laneway.turns_held t where t.limit_name = any (p_names) and t.waits
    window newest as (partition by t.limit_name, t.lane order by t.lane_since desc, t.used desc);
end $$;

-- Whether capacity is left for a waiter: it was not skipped, and its lane could take a job now.
create or replace function laneway.can_take_turn(p laneway.limit_waiters, p_now timestamptz) returns boolean
language sql stable as $$
    select (p.called_at is null or p.called_at > p_now - interval '300 ms')
       and not (p.kind = 'claim' and exists (
           select from laneway.worker_lanes l
            where l.name = p.lane and (not l.enabled or l.max_slots <= (
                  select coalesce(sum(u.running), 0) from laneway.slots_held u where u.lane = p.lane))))
$$;

-- How much of the free capacity of a limit a waiter may take now, null for all. p_rank: the rank of its first job.
create or replace function laneway.turn_capacity(
    p_limit text, p_room integer, p_lane text, p_worker uuid, p_kind text, p_rank integer, p_now timestamptz)
returns integer language plpgsql stable as $$
declare
    v_site   text;
    v_line   laneway.limit_waiters[] := array(select w from laneway.waiters_of(array[p_limit]) w);
    v_mine   record;
    v_others record;
begin
    select laneway.site_of(l.scope, p_worker) into v_site from laneway.limits l where l.name = p_limit;
    select coalesce(max(w.lane_since), p_now) as lane_since,
           coalesce(max(w.since) filter (where w.worker_id = p_worker and w.kind = p_kind), p_now) as since
      into v_mine from unnest(v_line) w where w.lane = p_lane;
    select count(*) filter (where w.rank < p_rank) as higher,
           count(*) filter (where w.rank = p_rank and w.since <= p_now - interval '20 ms'
                              and (w.lane_since, w.since) < (v_mine.lane_since, v_mine.since)) as ahead,
           array_agg(distinct w.lane) filter (where w.rank = p_rank) as lanes
      into v_others
      from unnest(v_line) w
     where w.site = v_site
       and (w.lane, w.worker_id, w.kind) <> (p_lane, p_worker, p_kind)
       -- Claims of one lane take its jobs in order, whichever worker claims.
       and not (w.lane = p_lane and w.kind = 'claim' and p_kind = 'claim' and w.rank >= p_rank)
       and laneway.can_take_turn(w, p_now);
    if v_others.higher > 0 then return 0; end if;
    if v_others.lanes is null then return null; end if;
    return greatest(0, least(p_room - v_others.ahead, (
        select ceil(p_room * max(x.weight) filter (where x.lane = p_lane) / sum(x.weight))
          from (select n.lane, laneway.turn_weight(p_limit, n.lane)::numeric as weight
                  from unnest(v_others.lanes || p_lane) n (lane) group by n.lane) x)))::integer;
end $$;

-- The number of starts of a lane per round.
create or replace function laneway.turn_weight(p_limit text, p_lane text) returns integer language sql stable as $$
    select greatest(1, coalesce(least(max(w.max_slots), max(l.max_concurrent)), 1))
      from laneway.limits l left join laneway.worker_lanes w on w.name = p_lane where l.name = p_limit
$$;

-- Adds a waiter for a limit, with the rank of its first job; null: removes it. Waits for a lock on its row.
create or replace function laneway.save_turn(
    p_limit text, p_lane text, p_worker uuid, p_kind text, p_site text, p_rank integer, p_now timestamptz)
returns void language plpgsql volatile
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    v_lane_since timestamptz;
begin
    if p_rank is not null then
        select coalesce(max(w.lane_since), p_now) into v_lane_since
          from laneway.waiters_of(array[p_limit]) w where w.lane = p_lane;
    end if;
    -- Two rounds, or a few more under concurrent writes.
    for i in 1 .. 10 loop
        update laneway.limit_turns c
           set waits = p_rank is not null, rank = coalesce(p_rank, c.rank), site = coalesce(p_site, c.site),
               used = case when c.waits then c.used else 0 end, called_at = null,
               lane_since = case when c.waits or p_rank is null then c.lane_since else v_lane_since end,
               since = case when c.waits and p_rank is not null then c.since else p_now end,
               changes = (c.changes + 1) % 32, place = c.place + (c.changes + 1) / 32
         where c.limit_name = p_limit and c.lane = p_lane and c.worker_id = p_worker and c.kind = p_kind
           and c.place = (select x.place from laneway.limit_turns x
                           where x.limit_name = p_limit and x.lane = p_lane and x.worker_id = p_worker and x.kind = p_kind
                           order by x.place desc limit 1);
        if found then return; end if;
        -- The row moved after that statement began, or does not exist. With the lock, the next read finds it.
        perform from laneway.limit_turns x
          where x.limit_name = p_limit and x.lane = p_lane and x.worker_id = p_worker and x.kind = p_kind
          order by x.place desc limit 1 for no key update;
        continue when found;
        if p_rank is null then return; end if;
        perform laneway.delete_past_turns(p_limit, p_now - interval '1 minute', null);
        insert into laneway.limit_waiters (limit_name, lane, worker_id, kind, site, rank, lane_since, since)
        values (p_limit, p_lane, p_worker, p_kind, p_site, p_rank, v_lane_since, p_now)
        on conflict (limit_name, lane, worker_id, kind) do nothing;
        if found then return; end if;
        -- Its row of limit_turns was lost, as in a partial restore, or was inserted meanwhile.
        delete from laneway.limit_waiters h
         where h.limit_name = p_limit and h.lane = p_lane and h.worker_id = p_worker and h.kind = p_kind
           and not exists (select from laneway.limit_turns x
                            where x.limit_name = p_limit and x.lane = p_lane and x.worker_id = p_worker
                              and x.kind = p_kind);
    end loop;
end $$;

-- Deletes the rows of waiters that left a limit before p_before, all or those of one worker. Skips locked rows.
create or replace function laneway.delete_past_turns(p_limit text, p_before timestamptz, p_worker uuid) returns void
language plpgsql volatile
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
    with past as materialized (
        select h.ctid as tid from laneway.limit_waiters h
          join laneway.turns_held n
            on n.limit_name = h.limit_name and n.lane = h.lane and n.worker_id = h.worker_id and n.kind = h.kind
         cross join lateral (select from laneway.limit_turns x
                              where x.ctid = n.tid and not x.waits and x.since < p_before for update skip locked) t
         where h.limit_name = p_limit and (p_worker is null or h.worker_id = p_worker)
           for update of h skip locked)
    delete from laneway.limit_waiters h where h.ctid = any (array(select p.tid from past p));
end $$;

-- Records the starts of a waiter under limits, and for which limits it still waits: p_counts: starts of each;
-- p_waits: it may want more; p_yielded: limits whose capacity it left to others.
create or replace function laneway.update_turns(
    p_worker uuid, p_lane text, p_kind text, p_names text[], p_ranks integer[], p_counts integer[], p_waits boolean[],
    p_yielded text[], p_now timestamptz)
returns void language plpgsql volatile
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    r record;
    v_weight integer;
    v_left text[];
    v_called uuid[];
begin
    for r in
        select g.name, g.rank, g.count, g.waits, laneway.site_of(l.scope, p_worker) as site,
               g.count > 0 and s.is_shared as is_served, coalesce(s.is_known, false) as is_known, s.my_rank,
               s.my_site, s.is_called, s.used, s.lane_since, l.name is not null as is_limit
          from (select u.name, min(u.rank) as rank, max(u.count) as count, bool_or(u.waits) as waits
                  from unnest(p_names, p_ranks, p_counts, p_waits) as u (name, rank, count, waits) group by u.name) g
          left join laneway.limits l on l.name = g.name
         cross join lateral (
            select bool_or(m.is_mine) as is_known, bool_or(not m.is_mine) as is_shared,
                   min(w.rank) filter (where m.is_mine) as my_rank, min(w.site) filter (where m.is_mine) as my_site,
                   bool_or(w.called_at is not null) filter (where m.is_mine) as is_called,
                   max(w.used) filter (where w.lane = p_lane) as used,
                   max(w.lane_since) filter (where w.lane = p_lane) as lane_since
              from laneway.waiters_of(array[g.name]) w
             cross join lateral (select (w.lane, w.worker_id, w.kind) = (p_lane, p_worker, p_kind) as is_mine) m) s
         order by g.name collate "C"
    loop
        if r.is_served then
            v_weight := laneway.turn_weight(r.name, p_lane);
            -- Skips rows that change meanwhile: waiters_of reads the newest turn of the lane.
            update laneway.limit_turns c
               set used = case when r.used + r.count < v_weight then r.used + r.count else 0 end,
                   lane_since = case when r.used + r.count < v_weight then r.lane_since else p_now end,
                   since = case when c.worker_id = p_worker and c.kind = p_kind then p_now else c.since end,
                   called_at = case when c.worker_id = p_worker and c.kind = p_kind then null else c.called_at end,
                   changes = (c.changes + 1) % 32, place = c.place + (c.changes + 1) / 32
             where c.ctid = any (array(
                select t.tid from laneway.turns_held t
                 where t.limit_name = r.name and t.lane = p_lane and t.waits
                   and (r.waits or (t.worker_id, t.kind) <> (p_worker, p_kind))));
        end if;
        -- The rows of waiters that left slow every claim, and there may be no new waiter to delete them.
        if r.is_limit and random() < 0.01 then
            perform laneway.delete_past_turns(r.name, p_now - interval '1 minute', null);
        end if;
        if r.waits then
            if r.is_limit and (not r.is_known or (r.my_rank, r.my_site) <> (r.rank, r.site)
                               or (r.is_called and r.is_served is not true)) then
                perform laneway.save_turn(r.name, p_lane, p_worker, p_kind, r.site, r.rank, p_now);
            end if;
        elsif r.is_known then
            perform laneway.save_turn(r.name, p_lane, p_worker, p_kind, null, null, p_now);
            -- A granted call leaves no new capacity.
            if p_kind = 'claim' or r.count is null then v_left := v_left || r.name; end if;
        end if;
    end loop;
    if p_yielded is not null then
        with first as materialized (
            select f.* from unnest(p_yielded) n (name)
              join laneway.limits l on l.name = n.name
             cross join lateral (
                select o.* from laneway.waiters_of(array[n.name]) o
                 where o.site = laneway.site_of(l.scope, p_worker)
                   and (o.lane, o.worker_id, o.kind) <> (p_lane, p_worker, p_kind)
                   and laneway.can_take_turn(o, p_now)
                 order by o.rank, o.lane_since, o.since
                 -- If one was just skipped, more may be dead: call all, to skip them together.
                 limit case when exists (
                     select from laneway.waiters_of(array[n.name]) d
                      where d.called_at > p_now - interval '2 s'
                        and d.called_at <= p_now - interval '300 ms') then 200 else 1 end) f
        ), free as materialized (
            -- A waiter with a locked row is active already.
            select t.tid from first f
              join laneway.turns_held h
                on h.limit_name = f.limit_name and h.lane = f.lane and h.worker_id = f.worker_id and h.kind = f.kind
             cross join lateral (select x.ctid as tid from laneway.limit_turns x
                                  where x.ctid = h.tid and x.called_at is null for update skip locked) t
        ), called as (
            update laneway.limit_turns c
               set called_at = p_now, changes = (c.changes + 1) % 32, place = c.place + (c.changes + 1) / 32
             where c.ctid = any (array(select f.tid from free f))
            returning c.worker_id)
        select array_agg(c.worker_id) into v_called from called c;
        perform laneway.wake_workers(v_called, p_worker);
    end if;
    if v_left is not null then
        perform laneway.wake_next_waiters(v_left, p_worker);
    end if;
end $$;

-- Ends the waits of a waiter for all limits except the named ones: it has no more jobs that need them.
create or replace function laneway.leave_turns(p_worker uuid, p_lane text, p_kind text, p_but text[])
returns void language plpgsql volatile
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    v_left text[];
begin
    if exists (select from laneway.limit_waiters w where w.worker_id = p_worker) then
        -- Other workers of its lane write its rows too, under limits that this one has not locked: skip locked
        -- rows, and leave them with the next claim.
        with mine as materialized (
            select t.tid from laneway.turns_held h
             cross join lateral (select x.ctid as tid from laneway.limit_turns x
                                  where x.ctid = h.tid for update skip locked) t
             where h.worker_id = p_worker and h.lane = p_lane and h.kind = p_kind and h.waits
               and h.limit_name <> all (coalesce(p_but, '{}'))
        ), gone as (
            update laneway.limit_turns c
               set waits = false, called_at = null, since = clock_timestamp(),
                   changes = (c.changes + 1) % 32, place = c.place + (c.changes + 1) / 32
             where c.ctid = any (array(select m.tid from mine m))
            returning c.limit_name)
        select array_agg(g.limit_name) into v_left from gone g;
        if v_left is not null then
            perform laneway.wake_next_waiters(v_left, p_worker);
        end if;
    end if;
end $$;

-- Wakes the first waiters for limits that have capacity now at the site of this worker, except this worker. If its
-- site is no longer known, at any site.
create or replace function laneway.wake_next_waiters(p_names text[], p_worker uuid) returns void
language sql volatile as $$
    select laneway.wake_workers(array_agg(f.worker_id), p_worker)
      from (select l.name, laneway.site_of(l.scope, p_worker) as site from laneway.limits l where l.name = any (p_names)) n
     cross join lateral (select w.worker_id from laneway.waiters_of(array[n.name]) w
                          where w.site = n.site or n.site = ''
                          order by w.rank, w.lane_since, w.since limit 2) f
$$;

create or replace function laneway.wake_workers(p_workers uuid[], p_but uuid) returns void
language plpgsql volatile as $$
declare
    -- A message fits about 200 ids; other workers claim at their next poll.
    v_called text := (select string_agg(u.w::text, ' ')
                        from (select distinct w from unnest(p_workers) w where w <> p_but limit 200) u);
begin
    if v_called is not null then
        perform pg_notify('laneway', 'turn ' || v_called);
    end if;
end $$;

-- The next waiter for a limit, shown to users: null without one.
create or replace function laneway.next_in_turn(p_limit text) returns jsonb language sql stable
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
    select jsonb_build_object('lane', w.lane, 'priority', -w.rank, 'kind', w.kind)
      from laneway.waiters_of(array[p_limit]) w
     where laneway.can_take_turn(w, clock_timestamp())
     order by w.rank, w.lane_since, w.since limit 1
$$;
