-- Server settings of a session of this role, in PostgreSQL's units, and where each was set.
select name, setting, source from pg_catalog.pg_settings where name = any (%(names)s::text[])
