-- Makes functions find PostgreSQL's functions and operators, whatever the search_path of the caller. Last of the
-- definitions, so that it covers all. SQL functions without settings are left out: most would no longer be inlined,
-- and claims call them only from covered functions.
do $$
declare
    v_function regprocedure;
begin
    for v_function in
        select f.oid from pg_catalog.pg_proc f join pg_catalog.pg_language l on l.oid = f.prolang
         where f.pronamespace = 'laneway'::regnamespace and (l.lanname = 'plpgsql' or f.proconfig is not null)
           and not exists (select from unnest(f.proconfig) c where c like 'search_path=%')
    loop
        execute format('alter function %s set search_path = pg_catalog, pg_temp', v_function);
    end loop;
end $$;
