-- Drops retired functions, named by number in laneway.retired. One with dependents stays.
do $$
declare
    v_function regprocedure;
begin
    for v_function in select f.oid from pg_proc f
                       where f.pronamespace = 'laneway'::regnamespace and f.proname like 'retired\_%'
                         and f.oid = any (current_setting('laneway.retired')::oid[]) loop
        begin
            execute format('drop function %s', v_function);
        exception when dependent_objects_still_exist then null;
        end;
    end loop;
end $$;
