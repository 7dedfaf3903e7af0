-- Creates or replaces a function so that exactly one of its name is left: an older signature would make calls
-- ambiguous, and `create or replace` refuses another return type. A statement that has begun keeps the language and
-- the rights of a function, so a function with others is not replaced in place either, unless something depends on it.
create function laneway.replace_function(p_name text, p_definition text) returns void language plpgsql as $$
begin
    begin
        execute p_definition;
        if exists (select from pg_proc f join laneway.rights_before b on b.oid = f.oid
                    where f.pronamespace = 'laneway'::regnamespace and f.proname = p_name
                      and (f.prolang, f.prosecdef) is distinct from (b.language, b.is_definer)
                      and not exists (select from pg_depend d
                                       where d.refclassid = 'pg_proc'::regclass and d.refobjid = f.oid)) then
            raise invalid_function_definition;
        end if;
    exception when invalid_function_definition then
        perform laneway.retire_function(f.oid) from pg_proc f
          where f.pronamespace = 'laneway'::regnamespace and f.proname = p_name;
        execute p_definition;
    end;
    perform laneway.retire_function(f.oid) from pg_proc f
       join laneway.rights_before b on b.oid = f.oid and b.written = f.xmin::text
      where f.pronamespace = 'laneway'::regnamespace and f.proname = p_name;
end $$;
