-- Creates or replaces a trigger, last of all and only if it differs. Compares it on an empty copy of its table,
-- because creating a trigger waits for every transaction that writes to the table.
create function laneway.replace_trigger(p_name text, p_definition text, p_is_last boolean)
returns void language plpgsql as $$
declare
    v_table  text := substring(p_definition from '\mon (laneway\.\w+)');
    v_before text := (select pg_get_triggerdef(t.oid) from pg_trigger t
                       where t.tgrelid = v_table::regclass and t.tgname = p_name);
    v_next   text;
begin
    if not p_is_last then return; end if;
    if v_before is not null then
        execute format('create table laneway.next_table (like %s)', v_table);
        execute replace(p_definition, v_table, 'laneway.next_table');
        v_next := (select pg_get_triggerdef(t.oid) from pg_trigger t
                    where t.tgrelid = 'laneway.next_table'::regclass and t.tgname = p_name);
        drop table laneway.next_table;
        if replace(v_next, 'laneway.next_table', v_table) = v_before then return; end if;
    end if;
    execute p_definition;
end $$;
