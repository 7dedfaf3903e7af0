-- Creates or replaces a view unless it is the same already: replacing it waits for everyone who reads it, and
-- everyone who comes later waits behind. Where its columns moved, it is dropped first, with our views above it: their
-- definitions come later.
create function laneway.replace_view(p_name text, p_definition text) returns void language plpgsql as $$
declare
    v_view    regclass := to_regclass(format('laneway.%I', p_name));
    v_is_same boolean;
    v_above   regclass;
begin
    if v_view is not null then
        execute regexp_replace(p_definition, 'create or replace view laneway\.\w+', 'create view laneway.next_view');
        v_is_same := (select count(distinct (pg_get_viewdef(c.oid), c.reloptions)) = 1 from pg_class c
                       where c.oid in (v_view, 'laneway.next_view'::regclass));
        drop view laneway.next_view;
        if v_is_same then return; end if;
    end if;
    execute p_definition;
exception when invalid_table_definition then
    for v_above in select distinct c.oid from pg_depend d
                     join pg_rewrite r on d.classid = 'pg_rewrite'::regclass and r.oid = d.objid
                     join pg_class c on c.oid = r.ev_class and c.relnamespace = 'laneway'::regnamespace
                    where d.refclassid = 'pg_class'::regclass and d.refobjid = v_view and c.oid <> v_view loop
        execute format('drop view %s', v_above);
    end loop;
    execute format('drop view %s', v_view);
    execute p_definition;
end $$;
