"""A worker that has no database: it gets jobs from a server over gRPC.

worker.py        builds the parts
endpoint.py, connection.py, call_errors.py   calls replicas
job_stream.py, loop_lag.py   receives jobs
attempt_store.py, heartbeat.py, heartbeat_child.py   writes about running attempts
type_warnings.py   differences between the worker's job types and the server's
"""
