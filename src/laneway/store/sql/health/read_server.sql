-- Version, recovery state and clock of the server.
select current_setting('server_version'), current_setting('server_version_num')::integer,
       pg_is_in_recovery(), clock_timestamp(), pg_backend_pid()
