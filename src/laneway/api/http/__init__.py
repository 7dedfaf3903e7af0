"""Everything between a socket and a route.

server.py, protocol.py, connections.py, tls.py   accept connections within bounds
middleware.py, bodies.py, parameters.py, paging.py, portions.py   read requests
auth.py, local_auth.py, job_access.py, lane_scope.py   authenticate, and scope permissions
idempotency.py, group_commit.py, read_slots.py, full_principals.py   share the database fairly
responses.py, event_response.py, problems.py   write responses and errors
"""
