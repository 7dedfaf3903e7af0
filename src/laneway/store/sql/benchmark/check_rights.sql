-- Returns whether the role may create a schema, and whether it owns the tables of Laneway.
select has_database_privilege(current_database(), 'create'),
       pg_has_role(current_user, (select c.relowner from pg_catalog.pg_class c where c.oid = 'laneway.jobs'::regclass),
                   'usage')
