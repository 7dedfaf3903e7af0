-- Whether the log still has every event of these watches since a snapshot of this log.
select not exists (
        select from unnest(%(seqs)s::bigint[]) s (seq) left join laneway.watches w on w.seq = s.seq
         where w.born is null or not pg_visible_in_snapshot(w.born, %(since)s::pg_snapshot))
   and (select l.pruned_xid <= pg_snapshot_xmin(%(since)s::pg_snapshot) from laneway.event_log l)
   and pg_snapshot_xmax(%(since)s::pg_snapshot) <= pg_snapshot_xmax(pg_current_snapshot())
   and coalesce(%(log)s::text = laneway.log_identity(), true)
