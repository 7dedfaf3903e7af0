-- Records the functions and views of the schema and their rights before they are replaced: where another one takes
-- the name, users keep their access to it.
create table laneway.rights_before as
select 'function' as kind, f.oid, f.proname::text as name, f.proacl as rights, f.xmin::text as written,
       f.prolang as language, f.prosecdef as is_definer
  from pg_proc f where f.pronamespace = 'laneway'::regnamespace
union all
select 'table', c.oid, c.relname::text, c.relacl, c.xmin::text, null, null
  from pg_class c where c.relnamespace = 'laneway'::regnamespace and c.relkind = 'v';
