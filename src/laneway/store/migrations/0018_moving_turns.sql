-- phase: pre
-- safe-with: 0.1.0
-- The places in the line for a limit move as counters do, so that a held snapshot slows down no claim: what
-- definitions/turns.sql says.

-- Functions of the version before go on with limit_waiters until they are replaced. Nothing is inserted there meanwhile:
-- each of its rows has a place below.
lock table laneway.limit_waiters in share row exclusive mode;

-- The state of each row of limit_waiters, which from now on is only inserted and deleted. waits: false where it left the
-- line; since: when it came or left.
create table laneway.limit_turns (
    limit_name  text collate "C" not null,
    lane        text collate "C" not null,
    worker_id   uuid not null,
    kind        text collate "C" not null,
    place       bigint not null default (extract(epoch from clock_timestamp()) * 1000000)::bigint,
    changes     integer not null default 0,
    waits       boolean not null default true,
    site        text not null,
    rank        integer not null,
    used        integer not null default 0,
    lane_since  timestamptz not null,
    since       timestamptz not null,
    called_at   timestamptz,
    primary key (limit_name, lane, worker_id, kind, place),
    foreign key (limit_name, lane, worker_id, kind) references laneway.limit_waiters on delete cascade
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
create index limit_waiters_worker on laneway.limit_waiters (worker_id);

insert into laneway.limit_turns (limit_name, lane, worker_id, kind, site, rank, used, lane_since, since, called_at)
select w.limit_name, w.lane, w.worker_id, w.kind, w.site, w.rank, w.used, w.lane_since, w.since, w.called_at
  from laneway.limit_waiters w;

-- With its owner's rights: functions of the version before are called by roles that may not write below.
create function laneway.begin_turn() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
begin
    insert into laneway.limit_turns (limit_name, lane, worker_id, kind, site, rank, used, lane_since, since, called_at)
    values (new.limit_name, new.lane, new.worker_id, new.kind, new.site, new.rank, new.used, new.lane_since,
            new.since, new.called_at);
    return null;
end $$;
create trigger begin_turn after insert on laneway.limit_waiters
    for each row execute function laneway.begin_turn();
