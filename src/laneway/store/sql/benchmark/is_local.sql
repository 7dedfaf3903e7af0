-- Returns whether the client and the server are on the same host.
select coalesce(inet_server_addr() = inet_client_addr(), true)
