"""What a role, a database or a server may set for our sessions, and what we set ourselves.

Settings of a role apply to every session of it. Laneway's own connections state each one that
changes what a statement means or how long it may take, so that none of them matters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import psycopg

from laneway.errors import UnsuitableDatabase

ENCODING: Final = "UTF8"

# The DSN may say otherwise. JIT: compiling one of our short statements takes a thousand times as
# long as running it.
_DEFAULTS: Final = {"jit": "off"}
# Not even the DSN may. Claims need their isolation level; names are those of PostgreSQL, whatever
# a schema before pg_catalog defines; a listener is idle for as long as nothing happens.
_FIXED: Final = {
    "default_transaction_isolation": r"read\ committed",
    "default_transaction_deferrable": "off",
    "search_path": "pg_catalog,pg_temp",
    "idle_session_timeout": "0",
    "lock_timeout": "0",
    "row_security": "on",
    "exit_on_error": "off",
    "array_nulls": "on",
    "transform_null_equals": "off",
    "standard_conforming_strings": "on",
    "bytea_output": "hex",
    "DateStyle": "ISO",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "extra_float_digits": "1",
    "client_min_messages": "warning",
    "plpgsql.extra_errors": "none",
    "plpgsql.extra_warnings": "none",
}
# Where a pooler stands between, the session is also of others, and the process another than the
# client was given.
_MEAN_POSTGRESQL: Final = """
select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false)
 where pg_catalog.pg_backend_pid() = %s
"""
_ASK: Final = """
select pg_catalog.current_setting('server_encoding'),
       pg_catalog.current_setting('default_transaction_read_only'),
       pg_catalog.pg_is_in_recovery(), pg_catalog.quote_ident(current_user),
       pg_catalog.quote_ident(pg_catalog.current_database())
"""


def startup_options(bounds: Mapping[str, object], given: str) -> str:
    """Value of the connection parameter `options`; `given` is what the DSN says there."""
    return " ".join(filter(None, [_flags(_DEFAULTS), _flags(bounds), given, _flags(_FIXED)]))


def _flags(settings: Mapping[str, object]) -> str:
    return " ".join(f"-c {name}={value}" for name, value in settings.items())


def refuse_unsuitable(conn: psycopg.Connection[Any]) -> None:
    """Raises UnsuitableDatabase where no session of this role could ever do our work.

    For a plain connection: it also sets the search path, as our other connections do at start.
    """
    conn.execute(_MEAN_POSTGRESQL, [conn.info.backend_pid])
    row = conn.execute(_ASK).fetchone()
    if row is None:
        return
    encoding, read_only, is_standby, role, database = row
    if encoding != ENCODING:
        raise UnsuitableDatabase(
            f"the database {database} has the encoding {encoding}, which cannot hold every"
            " payload and error",
            "use one made with `create database … encoding 'UTF8' template template0`",
        )
    if read_only == "on" and not is_standby:
        raise UnsuitableDatabase(
            f"the sessions of role {role} in database {database} are read-only"
            " (default_transaction_read_only = on)",
            f"`alter role {role} set default_transaction_read_only = off`, or the same for the"
            " database",
        )
