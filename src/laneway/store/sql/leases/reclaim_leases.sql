-- Reclaims overdue leases only while this holder is the leader: its epoch is renewed in the same transaction.
-- next_s: until the next lease lapses without renewal; for other processes, until the leadership lapses.
-- Both are read as before this pass; a resigned leader leaves none, because older servers cannot subtract infinity.
select w.epoch, w.reclaimed, w.job_types, w.more, w.has_duties is true,
       case when w.epoch is not null
            then (select extract(epoch from min(l.lease_until) - clock_timestamp()) from laneway.lease l
                   where l.lease_until >= statement_timestamp())
            else (select extract(epoch from r.held_until - clock_timestamp()) from laneway.leader r
                   where r.name = 'leader' and isfinite(r.held_until))
            end::double precision as next_s,
       extract(epoch from clock_timestamp())::double precision as clock_s,
       w.lost::text as lost
  from laneway.run_watchdog(%(holder)s::uuid, %(ttl)s::double precision, %(limit)s::integer) w
