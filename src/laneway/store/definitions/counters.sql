-- Used slots and limits: one counter per worker and lane, and per worker and limit.
-- While an old snapshot is held, PostgreSQL cannot remove dead versions of a counter, and a lookup by key reads them
-- all. So a counter moves: every 32 changes its `place`, the last column of its key, grows by one, and readers start at
-- the highest place. They read at most 32 dead versions. A new counter starts at the current microsecond, which is
-- above any deleted counter of the same key.
-- slot_holders and limit_holders list the existing counters; their rows never change. slot_usage and limit_usage are
-- empty parents of the counters, for statements of earlier versions and for users: rows inserted there count.

-- The current counters, each found by its highest place.
create or replace view laneway.slots_held as
select h.lane, h.worker_id, c.place, c.running
  from laneway.slot_holders h
 cross join lateral (select x.place, x.running from laneway.slot_counts x
                      where x.lane = h.lane and x.worker_id = h.worker_id order by x.place desc limit 1) c;

create or replace view laneway.limits_held as
select h.limit_name, h.worker_id, c.host, c.place, c.running
  from laneway.limit_holders h
 cross join lateral (select x.host, x.place, x.running from laneway.limit_counts x
                      where x.limit_name = h.limit_name and x.worker_id = h.worker_id order by x.place desc limit 1) c;

-- Adds to the used slots of a worker in a lane. Does not subtract from a missing counter.
create or replace function laneway.count_slots(p_lane text, p_worker uuid, p_n integer) returns void
language plpgsql volatile
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
    loop
        update laneway.slot_counts c
           set running = c.running + p_n, changes = (c.changes + 1) % 32, place = c.place + (c.changes + 1) / 32
         where c.lane = p_lane and c.worker_id = p_worker
           and c.place = (select x.place from laneway.slot_counts x
                           where x.lane = p_lane and x.worker_id = p_worker order by x.place desc limit 1);
        if found then return; end if;
        -- The counter moved after that statement began, or does not exist. With the lock, the next read finds it.
        perform from laneway.slot_counts x
          where x.lane = p_lane and x.worker_id = p_worker order by x.place desc limit 1 for no key update;
        if not found then
            if p_n < 0 then return; end if;
            insert into laneway.slot_holders (lane, worker_id) values (p_lane, p_worker) on conflict do nothing;
            perform from laneway.slot_holders h where h.lane = p_lane and h.worker_id = p_worker for no key update;
            if found then
                insert into laneway.slot_counts (lane, worker_id, running)
                select p_lane, p_worker, p_n
                 where not exists (select from laneway.slot_counts x where x.lane = p_lane and x.worker_id = p_worker);
                if found then return; end if;
            end if;
        end if;
    end loop;
end $$;

-- The same for a limit. p_host: the host of the worker; null: looked up when its counter is created.
create or replace function laneway.count_limits(p_limit text, p_worker uuid, p_n integer, p_host text default null)
returns void language plpgsql volatile
set jit = off
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
    loop
        update laneway.limit_counts c
           set running = c.running + p_n, changes = (c.changes + 1) % 32, place = c.place + (c.changes + 1) / 32
         where c.limit_name = p_limit and c.worker_id = p_worker
           and c.place = (select x.place from laneway.limit_counts x
                           where x.limit_name = p_limit and x.worker_id = p_worker order by x.place desc limit 1);
        if found then return; end if;
        perform from laneway.limit_counts x
          where x.limit_name = p_limit and x.worker_id = p_worker order by x.place desc limit 1 for no key update;
        if not found then
            if p_n < 0 then return; end if;
            insert into laneway.limit_holders (limit_name, worker_id) values (p_limit, p_worker) on conflict do nothing;
            perform from laneway.limit_holders h
              where h.limit_name = p_limit and h.worker_id = p_worker for no key update;
            if found then
                insert into laneway.limit_counts (limit_name, worker_id, host, running)
                select p_limit, p_worker, coalesce(p_host, laneway.host_of(p_worker)), p_n
                 where not exists (select from laneway.limit_counts x
                                    where x.limit_name = p_limit and x.worker_id = p_worker);
                if found then return; end if;
            end if;
        end if;
    end loop;
end $$;
