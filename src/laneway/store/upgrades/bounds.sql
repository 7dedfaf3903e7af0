-- Timeouts of a migration, set on the server before it takes a lock: a client that freezes or loses its network
-- cannot delay other sessions. Local to the transaction, because a pooler shares the session.
set local client_min_messages = warning;
set local search_path = pg_catalog, pg_temp;
set local idle_in_transaction_session_timeout = '5s';
set local tcp_keepalives_idle = 5;
set local tcp_keepalives_interval = 2;
set local tcp_keepalives_count = 3;
set local tcp_user_timeout = 10000;
set local statement_timeout = '1h';
-- Ends a statement whose client is gone; not every platform supports it.
do $$ begin
    perform set_config('client_connection_check_interval', '2s', true);
exception when others then null;
end $$;
