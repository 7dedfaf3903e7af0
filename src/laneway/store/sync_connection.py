"""A sync connection that reconnects by itself, for a dedicated thread."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, TypeVar

import psycopg

from laneway.store import pooler
from laneway.store.database import run_sync
from laneway.store.driver_errors import translated
from laneway.store.silence import hang_up
from laneway.store.statement import Statement

T = TypeVar("T")


class SyncConnection:
    """Connects on first use, and again after a failure."""

    def __init__(self, dsn: str, options: Mapping[str, Any]) -> None:
        """`options`: from `connection_options`, called where the settings are known."""
        self._dsn = dsn
        self._options = options
        self._conn: psycopg.Connection[Any] | None = None

    def run(self, statement: Statement[T], within_s: float | None = None) -> T:
        """Runs a statement; closes the connection if no result arrives `within_s`."""
        with translated():
            if self._conn is None or self._conn.closed:
                may_detect = "options" in self._options
                self._conn = pooler.connect_sync(self._dsn, self._options, may_detect=may_detect)
            timer = None
            if within_s is not None:
                timer = threading.Timer(within_s, hang_up, [self._conn])
                timer.daemon = True
                timer.start()
            try:
                return run_sync(self._conn, statement)
            except BaseException:
                self.close()
                raise
            finally:
                if timer is not None:
                    timer.cancel()

    def close(self) -> None:
        if self._conn is not None:
            self._conn.close()
            self._conn = None
