"""All SQL, and the only room (besides embedded/) that imports the database driver.

A store operation is a value: `Statement(name, decode, params)`, built by a pure function and run
by `Database.run` (async) or `run_sync` (on the caller's connection). Start reading at
statement.py, then leases.py (claim, settle, heartbeat: the hot path), migrations/ (the tables and
their reasons) and definitions/ (the current functions and views). May import domain, config and
errors; imported by engine, control and client.
"""
