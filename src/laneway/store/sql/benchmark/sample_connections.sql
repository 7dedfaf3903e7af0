-- Returns the active connections of an application, and what each waits for.
select a.pid, a.wait_event_type, a.wait_event
  from pg_catalog.pg_stat_activity a
 where a.datname = current_database() and a.application_name = %(application)s::text and a.state = 'active'
   and a.pid <> pg_backend_pid()
