-- Sessions that hold locks which claims or other statements need, and how many sessions wait for each.
-- Locks needed by claims (lanes, limits, counters, control gate) count once they are held for longer than a claim takes;
-- a lock of any Laneway table counts that keeps others from reading or writing it, as VACUUM FULL and CREATE INDEX do.
-- PostgreSQL does not list row locks: a table lock for writing or locking rows stands for them.
-- A session of another role hides its age: it is listed once another session waits for it, with that waiting time.
-- `waiting` counts the sessions that wait for it.
with held as (
    select distinct k.pid from pg_locks k
     where k.granted and k.database = (select d.oid from pg_database d where d.datname = current_database())
       and (k.locktype = 'relation' and exists (
                select from pg_class c
                 where c.oid = k.relation and c.relnamespace = to_regnamespace('laneway') and c.relkind in ('r', 'p')
                   and (k.mode in ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')
                        or c.relname in ('worker_lanes', 'limits', 'control', 'slot_counts', 'limit_counts',
                                         'limit_waiters', 'limit_turns')
                           and k.mode not in ('AccessShareLock', 'ShareUpdateExclusiveLock')))
            or k.locktype = 'advisory' and k.mode = 'ExclusiveLock' and k.objsubid = 1
               and (k.classid::bigint << 32 | k.objid::bigint) = 5577006791947779410)
), waits as (
    select b.pid, count(*)::integer as waiting, min(w.waitstart) as since
      from pg_locks w cross join lateral unnest(pg_blocking_pids(w.pid)) as b (pid)
     where not w.granted
     group by b.pid
)
select h.pid, coalesce(a.application_name, ''), a.usename, coalesce(a.state, ''),
       extract(epoch from clock_timestamp() - coalesce(a.xact_start, w.since))::double precision as age_s,
       coalesce(w.waiting, 0)
  from held h
  join pg_stat_activity a on a.pid = h.pid
  left join waits w on w.pid = h.pid
 where h.pid <> pg_backend_pid()
   -- A session that waits itself only delays others because of the session it waits for.
   and not exists (select from pg_locks k where k.pid = h.pid and not k.granted)
   and clock_timestamp() - coalesce(a.xact_start, w.since) >= make_interval(secs => %(age)s::double precision)
 order by age_s desc limit 5
