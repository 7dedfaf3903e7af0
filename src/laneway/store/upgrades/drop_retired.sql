-- Drops retired functions, named by number in laneway.retired. One with dependents stays, and one may be gone already.
do $$
declare
    v_function text;
begin
    for v_function in select format('laneway.%I(%s)', f.proname, pg_get_function_identity_arguments(f.oid)) from pg_proc f
                       where f.pronamespace = 'laneway'::regnamespace and f.proname ~ '^retired_[0-9]+_'
                         and f.oid = any (current_setting('laneway.retired')::oid[]) loop
        begin
            execute format('drop function if exists %s', v_function);
        exception when dependent_objects_still_exist then null;
        end;
    end loop;
end $$;
