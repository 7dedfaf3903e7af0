"""All SQL, and the only room (besides embedded/) that imports the database driver.

A store operation is a value: `Statement(name, params, decode)`, built by a pure function and run
by `Database.run` (async) or `run_sync` (a connection of the caller). Start reading at
statement.py, then leases.py (claim, settle, heartbeat: the hot path) and
migrations/0001_dispatch_core.sql (the schema, and why it looks as it does). May import domain,
config, errors; imported by engine, control, client.
"""
