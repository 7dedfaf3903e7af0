"""Empty the database that the tests of a module share, over one connection for all of them."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import psycopg


class DatabaseReset:
    """Runs a reset script; a new connection per test would take longer than the script."""

    def __init__(self, dsn: str, reset: str) -> None:
        self._dsn = dsn
        self._reset = reset.encode()
        self._conn: psycopg.Connection[tuple[Any, ...]] | None = None

    def run(self) -> None:
        try:
            self._connection().execute(self._reset)
        except psycopg.OperationalError:
            # The previous test ended every connection of the database.
            self._close()
            self._connection().execute(self._reset)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def _connection(self) -> psycopg.Connection[tuple[Any, ...]]:
        if self._conn is None:
            self._conn = psycopg.connect(self._dsn, autocommit=True, application_name="tests")
        return self._conn

    def _close(self) -> None:
        if self._conn is not None:
            self._conn.close()
            self._conn = None
