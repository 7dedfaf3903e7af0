-- Functions that all roles may call or whose search_path is open, and roles that can write jobs without the functions.
-- Such roles have no right to claim: grants of earlier versions let clients and approvers write.
select 'function', p.proname::text, p.prosecdef
  from pg_proc p
 where p.pronamespace = 'laneway'::regnamespace and p.prorettype <> 'trigger'::regtype
   and has_function_privilege('public', p.oid, 'execute')
union all
select 'path', p.proname::text, true
  from pg_proc p
 where p.pronamespace = 'laneway'::regnamespace and p.prosecdef
   and not exists (select from unnest(p.proconfig) c where c = 'search_path=pg_catalog, pg_temp')
union all
select distinct 'role', a.grantee::regrole::text, false
  from pg_class c cross join lateral aclexplode(c.relacl) a
 where c.oid in ('laneway.jobs'::regclass, 'laneway.ready'::regclass, 'laneway.delayed'::regclass,
                 'laneway.approvals'::regclass, 'laneway.lease'::regclass)
   and a.privilege_type in ('INSERT', 'UPDATE', 'DELETE') and a.grantee <> c.relowner
   and (a.grantee = 0 or not has_table_privilege(a.grantee, 'laneway.lease', 'insert'))
 order by 1, 2
