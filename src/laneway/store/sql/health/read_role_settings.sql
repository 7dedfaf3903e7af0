-- Settings that `alter role` gave to the roles that use Laneway here, as written there; without `names` there are none.
-- Superusers may use everything: only the current one counts.
select r.rolname::text, s.setdatabase <> 0, split_part(c.entry, '=', 1),
       substr(c.entry, strpos(c.entry, '=') + 1)
  from pg_catalog.pg_db_role_setting s
  join pg_catalog.pg_roles r on r.oid = s.setrole
 cross join lateral unnest(s.setconfig) as c (entry)
 where s.setdatabase in (0, (select d.oid from pg_catalog.pg_database d where d.datname = current_database()))
   and (r.rolname = current_user or not r.rolsuper)
   and to_regnamespace('laneway') is not null and has_schema_privilege(r.oid, to_regnamespace('laneway'), 'usage')
   and split_part(c.entry, '=', 1) = any (%(names)s::text[])
 order by 1, 2, 3
