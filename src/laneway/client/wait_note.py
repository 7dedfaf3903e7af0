"""The note that a handler waits for a job, so that `explain` can name circles."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from laneway.domain.claim import Claim
from laneway.domain.current_claim import current_claim
from laneway.errors import LanewayError
from laneway.observability.safe_logger import SafeLogger
from laneway.store import waits

if TYPE_CHECKING:
    from laneway.store.database import Database

log = SafeLogger(__name__)


# A note that takes longer is given up.
_LONGEST_S: Final = 1.0
# The event loop keeps only weak references to its tasks.
_in_progress: set[asyncio.Task[None]] = set()


class WaitNote:
    """Written once a wait inside a handler has become long; outside of handlers, never.

    Written and erased in the background: it delays neither the result nor a cancellation.
    """

    def __init__(self, database: Database, job_id: UUID) -> None:
        self._database = database
        self._job_id = job_id
        self._claim: Claim | None = current_claim.get()
        self._is_written = False
        self._writing: asyncio.Task[None] | None = None
        self._erasing: asyncio.Task[None] | None = None

    def write(self) -> None:
        if self._claim is None or self._is_written:
            return
        if self._writing is None or self._writing.done():
            self._writing = _start(self._write(self._claim))

    def erase(self) -> None:
        """Erase it, if it may be written; otherwise it ends with the attempt."""
        if self._claim is not None and self._writing is not None:
            self._erasing = _start(self._erase(self._claim, self._writing))

    async def _write(self, claim: Claim) -> None:
        self._is_written = await self._run(claim, ends=False)

    async def _erase(self, claim: Claim, writing: asyncio.Task[None]) -> None:
        await asyncio.wait({writing})
        await self._run(claim, ends=True)

    async def _run(self, claim: Claim, *, ends: bool) -> bool:
        try:
            async with asyncio.timeout(_LONGEST_S):
                noted = await self._database.run(waits.note(claim, self._job_id, ends=ends))
        except (LanewayError, TimeoutError) as error:
            # It only explains: the wait itself does not depend on it.
            log.debug("job %s: the note of its wait was not stored: %s", claim.job_id, error)
            return False
        return bool(noted)


def _start(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    task = asyncio.create_task(work)
    _in_progress.add(task)
    task.add_done_callback(_in_progress.discard)
    return task


@contextmanager
def noting(database: Database, job_id: UUID) -> Iterator[WaitNote]:
    """A note for the wait in the block, erased after it."""
    note = WaitNote(database, job_id)
    try:
        yield note
    finally:
        note.erase()
