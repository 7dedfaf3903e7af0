-- Size of the database, and of each Laneway table its size with indexes and estimated rows.
select pg_database_size(current_database()), c.relname, pg_total_relation_size(c.oid),
       coalesce(s.n_live_tup, 0), coalesce(s.n_dead_tup, 0), greatest(s.last_vacuum, s.last_autovacuum)
  from pg_class c left join pg_stat_user_tables s on s.relid = c.oid
 where c.relnamespace = 'laneway'::regnamespace and c.relkind in ('r', 'p')
 order by 3 desc, 2
