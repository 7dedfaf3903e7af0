-- Settings of the server as a session of this role gets them, in the units of PostgreSQL.
select name, setting from pg_catalog.pg_settings where name = any (%(names)s::text[])
