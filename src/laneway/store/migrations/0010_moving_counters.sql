-- phase: pre
-- safe-with: 0.1.0
-- Counters of slots and limits move, so that a held snapshot does not slow down who looks for them: what
-- definitions/counters.sql says.

-- Earlier versions insert into the tables that were the counters, with `on conflict (lane, worker_id)`, read, update and
-- delete there. They go on doing so: the counters are below these tables now, and what is inserted above is counted below.
-- Readers wait too: one that was planned before and reads afterwards would find nothing above, and not look below.
lock table laneway.slot_usage, laneway.limit_usage in access exclusive mode;

create table laneway.slot_counts (
    place    bigint not null default (extract(epoch from clock_timestamp()) * 1000000)::bigint,
    changes  integer not null default 0,
    primary key (lane, worker_id, place)
) inherits (laneway.slot_usage) with (fillfactor = 20);

create table laneway.limit_counts (
    place    bigint not null default (extract(epoch from clock_timestamp()) * 1000000)::bigint,
    changes  integer not null default 0,
    primary key (limit_name, worker_id, place)
) inherits (laneway.limit_usage) with (fillfactor = 20);

create table laneway.slot_holders (
    lane       text collate "C" not null,
    worker_id  uuid not null,
    primary key (lane, worker_id)
);
create index slot_holders_worker on laneway.slot_holders (worker_id);

create table laneway.limit_holders (
    limit_name  text collate "C" not null,
    worker_id   uuid not null,
    primary key (limit_name, worker_id)
);
create index limit_holders_worker on laneway.limit_holders (worker_id);

insert into laneway.slot_holders select u.lane, u.worker_id from only laneway.slot_usage u;
insert into laneway.slot_counts (lane, worker_id, running)
select u.lane, u.worker_id, u.running from only laneway.slot_usage u;
delete from only laneway.slot_usage;
insert into laneway.limit_holders select u.limit_name, u.worker_id from only laneway.limit_usage u;
insert into laneway.limit_counts (limit_name, worker_id, host, running)
select u.limit_name, u.worker_id, u.host, u.running from only laneway.limit_usage u;
delete from only laneway.limit_usage;

-- As in the definitions: functions of the version before need them until they are replaced.
create function laneway.count_slots(p_lane text, p_worker uuid, p_n integer) returns void
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
        -- It moved after that statement began, or there is none. Behind the lock the next look finds it.
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

create function laneway.count_limits(p_limit text, p_worker uuid, p_n integer, p_host text default null)
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

-- With their owner's rights: who may write above need not be able to write below.
create function laneway.add_slots() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform laneway.count_slots(new.lane, new.worker_id, new.running);
    return null;
end $$;
create trigger add_slots before insert on laneway.slot_usage
    for each row execute function laneway.add_slots();

create function laneway.add_limits() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
begin
    perform laneway.count_limits(new.limit_name, new.worker_id, new.running, new.host);
    return null;
end $$;
create trigger add_limits before insert on laneway.limit_usage
    for each row execute function laneway.add_limits();

create function laneway.forget_slot_holder() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
begin
    delete from laneway.slot_holders h where h.lane = old.lane and h.worker_id = old.worker_id;
    return null;
end $$;
create trigger forget_slot_holder after delete on laneway.slot_counts
    for each row execute function laneway.forget_slot_holder();

create function laneway.forget_limit_holder() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
begin
    delete from laneway.limit_holders h where h.limit_name = old.limit_name and h.worker_id = old.worker_id;
    return null;
end $$;
create trigger forget_limit_holder after delete on laneway.limit_counts
    for each row execute function laneway.forget_limit_holder();
