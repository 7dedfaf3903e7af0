-- Restores the rights of replaced functions and views; no function is open to all roles.
do $$
declare
    v_thing record;
    v_grant record;
begin
    for v_thing in
        select n.kind, n.target, b.rights
          from (select 'function' as kind, f.oid, f.proname::text as name, f.oid::regprocedure::text as target
                  from pg_proc f where f.pronamespace = 'laneway'::regnamespace
                union all
                select 'table', c.oid, c.relname::text, c.oid::regclass::text
                  from pg_class c where c.relnamespace = 'laneway'::regnamespace and c.relkind = 'v') n
         cross join lateral (select r.rights from laneway.rights_before r
                              where r.kind = n.kind and r.name = n.name and r.rights is not null
                              order by r.oid desc limit 1) b
         where not exists (select from laneway.rights_before r where r.kind = n.kind and r.oid = n.oid)
    loop
        execute format('revoke all on %s %s from public', v_thing.kind, v_thing.target);
        for v_grant in select a.privilege_type, a.is_grantable,
                              case a.grantee when 0 then 'public' else a.grantee::regrole::text end as role
                         from aclexplode(v_thing.rights) a
                        where a.grantee <> 0 or v_thing.kind <> 'function' loop
            execute format('grant %s on %s %s to %s%s', v_grant.privilege_type, v_thing.kind, v_thing.target,
                           v_grant.role, case when v_grant.is_grantable then ' with grant option' else '' end);
        end loop;
    end loop;
    -- Programs of this version read the second view where earlier ones read the first.
    for v_grant in
        select case a.grantee when 0 then 'public' else a.grantee::regrole::text end as role
          from pg_class c cross join lateral aclexplode(c.relacl) a
         where c.oid = to_regclass('laneway.jobs_as_text') and a.privilege_type = 'SELECT'
           and to_regclass('laneway.jobs_as_read') is not null
    loop
        execute format('grant select on laneway.jobs_as_read to %s', v_grant.role);
    end loop;
end $$;
drop table laneway.rights_before;
