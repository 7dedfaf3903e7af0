-- The oldest transaction in this database that keeps dead rows from being removed.
-- Sessions of other roles show their age only to pg_read_all_stats.
select a.pid, coalesce(a.application_name, ''), a.usename, a.state,
       extract(epoch from clock_timestamp() - a.xact_start)::double precision as age_s
  from pg_stat_activity a
 where a.backend_xmin is not null and a.pid <> pg_backend_pid() and a.datname = current_database()
   and a.backend_type = 'client backend' and a.xact_start is not null
 order by a.xact_start limit 1
