-- Renames a function that another one replaces: statements that have found it still call it by its number, and no
-- other finds it. `migrate` drops it when they have ended. Raises if something of the user depends on it.
create function laneway.retire_function(p_function regprocedure) returns void language plpgsql as $$
begin
    begin
        execute format('drop function %s', p_function);
        raise sqlstate 'LW005';
    exception when sqlstate 'LW005' then null;
    end;
    execute format('alter function %s rename to %I', p_function,
                   (select format('retired_%s_%s', f.oid, f.proname) from pg_proc f where f.oid = p_function));
end $$;
