-- The oldest transaction that may still add or return a job with an already assigned sequence number.
-- A transaction that draws numbers locks the sequence until it ends; one that returns jobs locks the table ready.
-- Other transactions, however old, hide no job. Nor do vacuum and analyze, which take other locks.
with now as materialized (select pg_current_snapshot() as seen)
select coalesce((
           select x.xid from pg_snapshot_xip(n.seen) as x (xid)
            where exists (select from pg_locks t
                            join pg_locks r on r.virtualtransaction = t.virtualtransaction
                           where t.locktype = 'transactionid' and t.transactionid = x.xid::xid and t.mode = 'ExclusiveLock'
                             and r.locktype = 'relation' and r.mode in ('RowShareLock', 'RowExclusiveLock')
                             and r.relation in ('laneway.jobs_seq_seq'::regclass, 'laneway.ready'::regclass)
                             and r.database = (select d.oid from pg_database d where d.datname = current_database()))
            order by x.xid limit 1),
           pg_snapshot_xmax(n.seen))::text
  from now n
