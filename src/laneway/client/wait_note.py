"""The note that a handler waits for a job, so that `explain` can name circles."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from uuid import UUID

from laneway.domain.claim import Claim
from laneway.domain.current_claim import current_claim
from laneway.errors import LanewayError
from laneway.store import waits

if TYPE_CHECKING:
    from laneway.store.database import Database

log = logging.getLogger(__name__)


class WaitNote:
    """Written once a wait inside a handler has become long; outside of handlers, never."""

    def __init__(self, database: Database, job_id: UUID) -> None:
        self._database = database
        self._job_id = job_id
        self._claim: Claim | None = current_claim.get()
        self._is_written = False

    async def write(self) -> None:
        if self._claim is not None and not self._is_written:
            self._is_written = await self._run(self._claim, ends=False)

    async def erase(self) -> None:
        """Erase it, even if the caller is cancelled; otherwise it ends with the attempt."""
        if self._claim is None or not self._is_written:
            return
        erasing = asyncio.ensure_future(self._run(self._claim, ends=True))
        try:
            await asyncio.shield(erasing)
        except asyncio.CancelledError:
            await asyncio.wait({erasing})
            raise

    async def _run(self, claim: Claim, *, ends: bool) -> bool:
        try:
            noted = await self._database.run(waits.note(claim, self._job_id, ends=ends))
        except LanewayError as error:
            # It only explains: the wait itself does not depend on it.
            log.debug("job %s: the note of its wait was not stored: %s", claim.job_id, error)
            return False
        return bool(noted)


@asynccontextmanager
async def noting(database: Database, job_id: UUID) -> AsyncIterator[WaitNote]:
    """A note for the wait in the block, erased after it."""
    note = WaitNote(database, job_id)
    try:
        yield note
    finally:
        await note.erase()
