"""Patience with jobs that other transactions have locked, for verbs on many jobs."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final, TypeVar

from laneway.store.statement import Statement

if TYPE_CHECKING:
    from laneway.store.database import Database

T = TypeVar("T")

# How long a verb comes back to locked jobs. Claims and settles lock a job for milliseconds.
PATIENCE_S: float = 10.0
# How long one try waits for a lock.
LOCK_MS: Final = 50
LOCKED: Final = "is locked by another transaction"
_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 0.5


async def run_unless_locked(db: Database, statement: Statement[T]) -> T:
    """Run a statement that waits for a lock for `LOCK_MS`, and raises StatementTimeout after that.

    A joined transaction goes on after it: the statement is a savepoint there.
    """
    if not db.is_joined:
        return await db.run(statement)
    async with db.joined() as savepoint:
        return await savepoint.run(statement)


class Patience:
    """Pauses between tries, until none of them has helped for `PATIENCE_S`."""

    def __init__(self) -> None:
        self._until: float | None = None
        self._pause_s = _FIRST_PAUSE_S

    async def pause(self) -> bool:
        """Pauses, longer each time; False at once when the time is up."""
        now = time.monotonic()
        if self._until is None:
            self._until = now + PATIENCE_S
        if now >= self._until:
            return False
        await asyncio.sleep(min(self._pause_s, self._until - now))
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
        return True

    def renew(self) -> None:
        """Begins again after a try that helped."""
        self._until, self._pause_s = None, _FIRST_PAUSE_S
