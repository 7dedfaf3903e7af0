-- What stands in the schema before it is replaced: where a function or view must be dropped first, who could use the
-- old one can use the new one.
create table laneway.rights_before as
select 'function' as kind, f.oid, f.proname::text as name, f.proacl as rights, f.xmin::text as written
  from pg_proc f where f.pronamespace = 'laneway'::regnamespace
union all
select 'table', c.oid, c.relname::text, c.relacl, c.xmin::text
  from pg_class c where c.relnamespace = 'laneway'::regnamespace and c.relkind = 'v';
