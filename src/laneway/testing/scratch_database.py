"""A database for tests: one per process, emptied before each test, with a clock that tests move."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from laneway.config.settings import Settings
from laneway.domain.redaction import redact
from laneway.errors import ConfigError, DatabaseUnavailable
from laneway.store.database import run_sync
from laneway.store.migrate import migrate
from laneway.store.statement import Statement
from laneway.testing.faults import is_alive

VARIABLE: Final = "LANEWAY_TEST_DATABASE_URL"
# Nothing in it has to survive a crash of the machine.
SERVER_SETTINGS: Final = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}

_SQL: Final = Path(__file__).with_suffix(".sql")
_NAME: Final = "laneway_test_{pid}_{unique}"
_OWNER: Final = re.compile(r"laneway_test_(\d+)_\w+")
_HOLDERS: Final = """
select format('process %s, %s, %s for %s s', a.pid,
              coalesce(nullif(a.application_name, ''), 'no name'), a.state,
              extract(epoch from pg_catalog.now() - a.xact_start)::integer)
  from pg_catalog.pg_stat_activity a
 where a.datname = pg_catalog.current_database() and a.xact_start is not null
   and a.pid <> pg_catalog.pg_backend_pid()
"""

_UNUSED: Final = """
select d.datname from pg_catalog.pg_database d
 where not exists (select from pg_catalog.pg_stat_activity a
                    where d.datname in (a.datname, a.application_name))
"""

T = TypeVar("T")
Conn = psycopg.Connection[tuple[Any, ...]]


class ScratchDatabase:
    """A database that tests own, and one connection to it."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self._conn: Conn | None = None

    def reset(self) -> None:
        """Restore the tables of Laneway to those of a new schema, and stop the clock at now."""
        try:
            self.execute("select laneway_testing.reset()")
        except psycopg.errors.LockNotAvailable as error:
            holders = ", ".join(str(row[0]) for row in self.execute(_HOLDERS))
            raise DatabaseUnavailable(
                f"the database of the tests cannot be emptied: a transaction is still open"
                f" ({holders or 'it has ended meanwhile'}). End it in the test that began it"
            ) from error

    def execute(self, query: str, *params: object) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows; connect again if the connection was lost."""
        try:
            return self._execute(query, params)
        except psycopg.OperationalError:
            if self._conn is not None and not self._conn.closed:
                raise
        return self._execute(query, params)

    def run(self, statement: Statement[T]) -> T:
        return run_sync(self._connection(), statement)

    def close(self) -> None:
        if self._conn is not None:
            self._conn.close()
            self._conn = None

    def _execute(self, query: str, params: tuple[object, ...]) -> list[tuple[Any, ...]]:
        cursor = self._connection().execute(query.encode(), params or None)
        return cursor.fetchall() if cursor.description else []

    def _connection(self) -> Conn:
        if self._conn is None or self._conn.closed:
            self._conn = psycopg.connect(
                self.dsn,
                autocommit=True,
                application_name="laneway testing",
                options="-c search_path=pg_catalog,pg_temp -c TimeZone=UTC",
            )
        return self._conn


@contextmanager
def open_scratch_database() -> Iterator[ScratchDatabase]:
    """Create a migrated database for this process, and drop it at the end."""
    name = _NAME.format(pid=os.getpid(), unique=uuid4().hex[:8])
    # The name of its session marks the database as used for as long as this process lives.
    with (
        _server() as server,
        psycopg.connect(server, autocommit=True, application_name=name) as admin,
    ):
        _require_superuser(admin)
        _drop_abandoned(admin)
        admin.execute(
            sql.SQL("create database {} template template0 encoding 'UTF8'").format(
                sql.Identifier(name)
            )
        )
        database = ScratchDatabase(_with_name(server, name))
        try:
            # Before the migrations: defaults of columns keep the function that they were made with.
            database.execute(_SQL.read_text())
            migrate(database.dsn)
            database.execute("select laneway_testing.save_seed()")
            yield database
        finally:
            database.close()
            _drop(admin, name)


@contextmanager
def _server() -> Iterator[str]:
    """The DSN of the server: `LANEWAY_TEST_DATABASE_URL`, else an embedded one for tests alone."""
    if given := os.environ.get(VARIABLE):
        redact.remember([given])
        yield given
        return
    from laneway.embedded.postgres import EmbeddedPostgres

    settings = Settings.load()
    own = EmbeddedPostgres(settings.data_dir, binaries=settings.pg_bin).data_dir
    beside = own.with_name(f"testing-{own.name}")
    with EmbeddedPostgres(beside, binaries=settings.pg_bin, settings=SERVER_SETTINGS) as server:
        yield server.dsn


def _require_superuser(admin: Conn) -> None:
    found = admin.execute("select rolsuper, rolname from pg_roles where rolname = current_user")
    is_superuser, role = found.fetchone() or (False, "?")
    if not is_superuser:
        raise ConfigError(
            f"{VARIABLE}: the role {role} is not a superuser, and the clock of the tests needs one."
            " Name a superuser of a server for tests, or unset it to use embedded PostgreSQL"
        )


def _drop_abandoned(admin: Conn) -> None:
    """Drop the databases of test processes on this machine that were killed.

    A process that is not found may live in another container that shares the socket: a database
    with a session of its test process, or any other, stays.
    """
    if admin.info.host and not admin.info.host.startswith("/"):
        # The process ids in their names may belong to another machine.
        return
    for (name,) in admin.execute(_UNUSED).fetchall():
        owner = _OWNER.fullmatch(name)
        if owner is not None and not is_alive(int(owner[1])):
            # Without force: a session may have begun since. Another process may drop it as well.
            with contextlib.suppress(psycopg.errors.ObjectInUse, psycopg.errors.InternalError):
                admin.execute(_drop_statement(name))


def _drop(admin: Conn, name: str) -> None:
    forced = sql.SQL("drop database if exists {} with (force)")
    admin.execute(forced.format(sql.Identifier(name)))


def _drop_statement(name: str) -> sql.Composed:
    return sql.SQL("drop database if exists {}").format(sql.Identifier(name))


def _with_name(dsn: str, name: str) -> str:
    if "://" in dsn:
        return urlunsplit(urlsplit(dsn)._replace(path=f"/{name}"))
    return make_conninfo(dsn, dbname=name)
