-- Server settings of a session of this role, in PostgreSQL's units.
select name, setting from pg_catalog.pg_settings where name = any (%(names)s::text[])
