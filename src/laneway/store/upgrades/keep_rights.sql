-- Records the rights in the schema before functions and views are replaced: where one must be dropped first,
-- its users keep their access to the new one.
create table laneway.rights_before as
select 'function' as kind, f.oid, f.proname::text as name, f.proacl as rights, f.xmin::text as written
  from pg_proc f where f.pronamespace = 'laneway'::regnamespace
union all
select 'table', c.oid, c.relname::text, c.relacl, c.xmin::text
  from pg_class c where c.relnamespace = 'laneway'::regnamespace and c.relkind = 'v';
