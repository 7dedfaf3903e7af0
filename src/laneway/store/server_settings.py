"""Session settings of Laneway's connections.

A role, a database or a server may set defaults for every session. Laneway's connections override
each setting that changes the meaning of a statement or its time limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import psycopg

from laneway.errors import UnsuitableDatabase

ENCODING: Final = "UTF8"

# The DSN may override these. JIT: compiling a short statement takes a thousand times as long as
# running it.
_DEFAULTS: Final = {"jit": "off"}
# The DSN cannot override these. Claims need this isolation level; a schema before pg_catalog in the
# search path could redefine names; a listener may be idle for a long time.
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
# Skipped behind a pooler, which shares the session: there the process id differs from the client's.
_SET_SEARCH_PATH: Final = """
select pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', false)
 where pg_catalog.pg_backend_pid() = %s
"""
_READ_SETTINGS: Final = """
select pg_catalog.current_setting('server_encoding'),
       pg_catalog.current_setting('default_transaction_read_only'),
       pg_catalog.pg_is_in_recovery(), pg_catalog.quote_ident(current_user),
       pg_catalog.quote_ident(pg_catalog.current_database())
"""


def startup_options(bounds: Mapping[str, object], given: str) -> str:
    """The value of the connection parameter `options`; `given` comes from the DSN."""
    return " ".join(filter(None, [_flags(_DEFAULTS), _flags(bounds), given, _flags(_FIXED)]))


def _flags(settings: Mapping[str, object]) -> str:
    return " ".join(f"-c {name}={value}" for name, value in settings.items())


def refuse_unsuitable(conn: psycopg.Connection[Any]) -> None:
    """Raises UnsuitableDatabase if no session of this role could run Laneway.

    For a plain connection: also sets the search path, as other connections do at start.
    """
    conn.execute(_SET_SEARCH_PATH, [conn.info.backend_pid])
    row = conn.execute(_READ_SETTINGS).fetchone()
    if row is None:
        return
    encoding, read_only, is_standby, role, database = row
    if encoding != ENCODING:
        raise UnsuitableDatabase(
            f"the database {database} has the encoding {encoding}, which cannot hold every"
            " payload and error",
            "use one created with `create database … encoding 'UTF8' template template0`",
        )
    if read_only == "on" and not is_standby:
        raise UnsuitableDatabase(
            f"the sessions of role {role} in database {database} are read-only"
            " (default_transaction_read_only = on)",
            f"run `alter role {role} set default_transaction_read_only = off`, or the same for the"
            " database",
        )
