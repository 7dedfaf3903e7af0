"""All SQL, and the only room (besides embedded/) that imports the database driver.

A store operation is a value: `Statement(name, params, decode)`, built by a pure function and run
by `Database.run` (async) or `run_sync` (a connection of the caller). Start reading at
statement.py, then leases.py (claim, settle, heartbeat: the hot path) and
migrations/ (the tables, and why they look as they do) and definitions/ (functions and views, each
as it is now). May import domain, config, errors; imported by engine, control, client.
"""
