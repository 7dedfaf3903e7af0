"""Translation of PostgreSQL and driver errors into Laneway errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection
from psycopg import errors as pg
from psycopg.sql import Identifier

from laneway.errors import (
    DatabaseUnavailable,
    InvalidInput,
    LanewayError,
    LoginRefused,
    MissingRight,
    QuotaExceeded,
    SchemaMismatch,
    UnreadableValue,
    UnsuitableDatabase,
)
from laneway.store import pooler
from laneway.store.aborted_statements import StatementAborted, StatementTimeout
from laneway.store.login import RefusedLogin

# Temporary failures of the session or server: retry on another connection.
TRANSIENT = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    pg.ReadOnlySqlTransaction,
    pg.IdleInTransactionSessionTimeout,
    pg.TransactionTimeout,
    pg.DuplicatePreparedStatement,
    pg.InvalidSqlStatementName,
)
# When a principal at its quota should try again.
QUOTA_PAUSE_S = 5.0
MISSING_SCHEMA = (pg.InvalidSchemaName, pg.UndefinedTable, pg.UndefinedFunction, pg.UndefinedColumn)

CURE_LOGIN: Final = "correct the user, password or database name in LANEWAY_DATABASE_URL"
CURE_WAIT: Final = "run `laneway doctor`, which names the session that blocks it"
CURE_POLICY: Final = (
    "use a workspace that the row-level security of laneway.jobs allows this database role,"
    " or change the policy"
)


# Parameters with JSON of the caller.
_PAYLOADS = frozenset({"payload", "payloads", "requests", "events"})


def field_of(params: Mapping[str, object]) -> str:
    """The field to name when PostgreSQL refuses a value."""
    return "value" if _PAYLOADS.isdisjoint(params) else "payload"


def translate(
    error: Exception,
    field: str = "payload",
    conn: psycopg.Connection[Any] | AsyncConnection[Any] | None = None,
    statement: str | None = None,
) -> LanewayError | None:
    """The Laneway error for a driver error; None for a defect in Laneway.

    `conn` is the connection that raised it and `statement` the name of what it ran, if known.
    """
    if isinstance(error, psycopg.Error) and error.sqlstate == "LW001":
        message = error.diag.message_primary or str(error)
        name, _, rule = message.partition(": ")
        return InvalidInput(name, rule or message)
    if isinstance(error, psycopg.Error) and error.sqlstate == "LW004":
        limit = error.diag.message_detail
        return QuotaExceeded(
            error.diag.message_primary or str(error),
            float(error.diag.message_hint or QUOTA_PAUSE_S),
            bound=error.diag.column_name,
            limit=int(limit) if limit else None,
        )
    if isinstance(error, psycopg.Error) and error.sqlstate == "LW002":
        return DatabaseUnavailable(f"{error.diag.message_primary}: {error.diag.message_hint}")
    if isinstance(error, MISSING_SCHEMA):
        return SchemaMismatch(
            f"the schema laneway is missing or of another version "
            f"({error.diag.message_primary or 'unknown'}): run `laneway db migrate`"
        )
    if isinstance(error, RefusedLogin):
        return LoginRefused(_first_line(error), CURE_LOGIN)
    if isinstance(error, (pg.QueryCanceled, pg.LockNotAvailable)):
        return StatementTimeout(f"a statement waited too long ({_first_line(error)}): {CURE_WAIT}")
    if isinstance(error, (pg.DeadlockDetected, pg.SerializationFailure)):
        return StatementAborted(_first_line(error))
    if isinstance(error, TRANSIENT):
        return DatabaseUnavailable(_first_line(error) + _cause(error))
    if isinstance(error, pg.DataError):
        return InvalidInput(field, f"PostgreSQL refuses it: {_first_line(error)}")
    if isinstance(error, pg.InsufficientPrivilege):
        return _refused_right(error, conn, statement)
    return None


def _refused_right(
    error: pg.InsufficientPrivilege,
    conn: psycopg.Connection[Any] | AsyncConnection[Any] | None,
    statement: str | None,
) -> UnsuitableDatabase:
    message = _first_line(error)
    if error.diag.source_function == "ExecWithCheckOptions":
        return UnsuitableDatabase(message, CURE_POLICY)
    login = "NAME" if conn is None or conn.closed else Identifier(conn.info.user).as_string(None)
    return missing_right(message, login, statement)


def missing_right(message: str, login: str, statement: str | None) -> UnsuitableDatabase:
    """The error for a role that PostgreSQL refuses, with what cures it."""
    if "row-level security" in message:
        return UnsuitableDatabase(message, CURE_POLICY)
    # Imported late: the heartbeat process starts faster without it.
    from laneway.store.grants import roles_with

    # The message ends with the object's name in every language.
    roles = roles_with(message.split()[-1].strip('"'), statement)
    return MissingRight(
        message,
        "as the schema's owner, run the SQL of"
        f" `laneway db grants --role {roles[-1] if roles else 'ROLE'} --to {login}`,"
        " with a --role for every Laneway role that it has: the others are revoked",
        tuple(roles),
    )


def _cause(error: Exception) -> str:
    """A hint for errors whose message does not name the cause."""
    if pooler.is_pooler_error(error):
        return f": {pooler.CURE}"
    if "session is read-only" in str(error):
        return " (is it a standby, or does the role set default_transaction_read_only?)"
    return ""


def _first_line(error: Exception) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0]


@contextmanager
def reading(statement: str) -> Iterator[None]:
    """Adds the statement's name to an error about rows that the driver cannot read."""
    try:
        yield
    except psycopg.DataError as error:
        raise UnreadableValue(
            f"{statement}: cannot read a stored value ({_first_line(error)}): correct it with SQL"
        ) from error


@contextmanager
def translated(
    field: str = "payload",
    conn: psycopg.Connection[Any] | AsyncConnection[Any] | None = None,
    statement: str | None = None,
) -> Iterator[None]:
    """Raises driver errors as Laneway errors; `field`: the name for a refused value."""
    try:
        yield
    except LanewayError:
        raise
    except Exception as error:
        translation = translate(error, field, conn, statement)
        if translation is None:
            raise
        raise translation from error
