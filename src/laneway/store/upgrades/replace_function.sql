-- Creates or replaces a function so that exactly one of its name is left: an older signature would make calls
-- ambiguous, and `create or replace` refuses another return type.
create function laneway.replace_function(p_name text, p_definition text) returns void language plpgsql as $$
declare
    v_function regprocedure;
begin
    begin
        execute p_definition;
    exception when invalid_function_definition then
        for v_function in select f.oid from pg_proc f
                           where f.pronamespace = 'laneway'::regnamespace and f.proname = p_name loop
            execute format('drop function %s', v_function);
        end loop;
        execute p_definition;
    end;
    for v_function in select f.oid from pg_proc f
                        join laneway.rights_before b on b.oid = f.oid and b.written = f.xmin::text
                       where f.pronamespace = 'laneway'::regnamespace and f.proname = p_name loop
        execute format('drop function %s', v_function);
    end loop;
end $$;
