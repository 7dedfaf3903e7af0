"""A database whose statements give up after waiting shortly for a lock.

It serves commands that find out why others wait: they must not join the queue themselves.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from laneway.store.bounds import bounded_transaction
from laneway.store.database import AsyncConn, Database, Transaction, run_on
from laneway.store.statement import Statement, nothing

# Much longer than claims and submits hold a lock.
LOCK_TIMEOUT_S: Final = 1.0
T = TypeVar("T")


class BriefWaits(Database):
    """Runs every statement in a transaction that first sets `lock_timeout`.

    The setting is local to the transaction: behind a pooler the session serves other clients too.
    """

    def __init__(self, parent: Database) -> None:
        super().__init__(lambda: parent.dsn, parent.settings, role=parent.role, size=1)
        self._parent = parent

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[AsyncConn]:
        async with self._parent.connection() as conn, bounded_transaction(conn, self.settings):
            await run_on(conn, set_lock_timeout(LOCK_TIMEOUT_S))
            yield conn

    async def run(self, statement: Statement[T]) -> T:
        async with self.connection() as conn:
            return await run_on(conn, statement)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        async with self.connection() as conn:
            yield Transaction(conn)


def set_lock_timeout(seconds: float) -> Statement[None]:
    """Bounds how long the statements of the transaction wait for a lock."""
    return Statement("health/set_lock_timeout", nothing, {"ms": str(int(seconds * 1000))})
