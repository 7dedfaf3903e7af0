-- Creates or replaces a view only if it differs: replacing it waits for all readers, and later readers wait behind
-- it. So a view that only gains columns is replaced last. If columns moved, it is dropped at once, with our views
-- that depend on it: their definitions come later. A new view of a column that another one gains is created last too.
create function laneway.replace_view(p_name text, p_definition text, p_is_last boolean)
returns void language plpgsql as $$
declare
    v_view     regclass := to_regclass(format('laneway.%I', p_name));
    v_is_same  boolean;
    v_is_wider boolean;
    v_above    regclass;
begin
    if v_view is null then
        begin
            execute p_definition;
        exception when undefined_column then
            if p_is_last then raise; end if;
        end;
        return;
    end if;
    execute regexp_replace(p_definition, 'create or replace view laneway\.\w+', 'create view laneway.next_view');
    v_is_same := (select count(distinct (pg_get_viewdef(c.oid), c.reloptions)) = 1 from pg_class c
                   where c.oid in (v_view, 'laneway.next_view'::regclass));
    v_is_wider := not exists (
        select from pg_attribute a
          left join pg_attribute n on n.attrelid = 'laneway.next_view'::regclass and n.attnum = a.attnum
         where a.attrelid = v_view and a.attnum > 0
           and (n.attname, n.atttypid, n.atttypmod, n.attcollation)
               is distinct from (a.attname, a.atttypid, a.atttypmod, a.attcollation));
    drop view laneway.next_view;
    if v_is_same or v_is_wider and not p_is_last then return; end if;
    if not v_is_wider then
        for v_above in select distinct c.oid from pg_depend d
                         join pg_rewrite r on d.classid = 'pg_rewrite'::regclass and r.oid = d.objid
                         join pg_class c on c.oid = r.ev_class and c.relnamespace = 'laneway'::regnamespace
                        where d.refclassid = 'pg_class'::regclass and d.refobjid = v_view and c.oid <> v_view loop
            execute format('drop view %s', v_above);
        end loop;
        execute format('drop view %s', v_view);
    end if;
    execute p_definition;
end $$;
