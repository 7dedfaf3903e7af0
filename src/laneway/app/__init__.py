"""Builds applications, workers and servers; only the command line is above.

laneway.py         `Laneway`: settings, client, handlers, worker
job_type.py        `JobType`: a handler, typed by its signature
loader.py          imports the application that a command names
sync.py            its verbs without an event loop
open_database.py   finds and opens the database
open_guard.py      a check before that, for tests
server.py          HTTP and gRPC server
remote_worker.py   worker without a database
worker_process.py  runs workers until a stop signal, alone or under a supervisor
memory.py          returns freed memory to the system
"""
