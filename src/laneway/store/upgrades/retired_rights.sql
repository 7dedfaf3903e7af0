-- Gives the roles of a function also those of its retired predecessor: a role could call it because all roles could,
-- and a statement that has begun needs the right until its end.
do $$
declare
    v_grant record;
begin
    for v_grant in
        select distinct f.oid::regprocedure as target, a.grantee::regrole as role
          from pg_proc f
          join pg_proc n on n.pronamespace = f.pronamespace
               and n.proname = substring(f.proname from '^retired_[0-9]+_(.+)$')
         cross join lateral aclexplode(n.proacl) a
         where f.pronamespace = 'laneway'::regnamespace and a.grantee <> 0
           and not has_function_privilege(a.grantee, f.oid, 'execute')
    loop
        execute format('grant execute on function %s to %s', v_grant.target, v_grant.role);
    end loop;
end $$;
