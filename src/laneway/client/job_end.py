"""Polls for the end of a job."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Final
from uuid import UUID

from laneway.client.wait_note import WaitNote, noting
from laneway.domain.states import TERMINAL, Status
from laneway.errors import DatabaseUnavailable, NotFound, SchemaMismatch, UnsuitableDatabase
from laneway.store import jobs

if TYPE_CHECKING:
    from laneway.store.database import Database

SHORTEST_POLL_S: Final = 0.01
LONGEST_POLL_S: Final = 0.5
_POLL_GROWTH: Final = 1.4
_SHORTEST_QUERY_S: Final = 1.0

# Status, result and error of a job.
Ended = tuple[str, str | None, str | None]


async def end_of(
    database: Database, wanted: UUID, timeout: float | None, cure: str | None = None
) -> Ended:
    """Waits until the job has ended; TimeoutError, with the cure, after `timeout` seconds.

    A wait inside a handler is noted once it polls slowly.
    """
    with noting(database, wanted) as note:
        return await _poll(database, wanted, timeout, note, cure)


async def _poll(
    database: Database,
    wanted: UUID,
    timeout: float | None,
    note: WaitNote,
    cure: str | None,
) -> Ended:
    loop = asyncio.get_running_loop()
    deadline = None if timeout is None else loop.time() + timeout
    pause = SHORTEST_POLL_S
    status = "its status could not be read"
    while True:
        cause: DatabaseUnavailable | None = None
        left = None if deadline is None else deadline - loop.time()
        try:
            # Even `timeout=0` gets one query.
            query_s = None if left is None else max(left, _SHORTEST_QUERY_S)
            async with asyncio.timeout(query_s):
                found = await database.run(jobs.wait(wanted))
            if found is None:
                raise NotFound(f"no job {wanted}")
            if Status(found[0]) in TERMINAL:
                return found
            status = f"its status is {found[0]}"
        except (SchemaMismatch, UnsuitableDatabase):
            raise
        except DatabaseUnavailable as error:
            cause = error
        except TimeoutError:
            pass
        left = None if deadline is None else deadline - loop.time()
        if left is not None and left <= 0:
            raise TimeoutError(
                f"job {wanted} did not end within {timeout} s: {status};"
                f" {cure or f'`laneway jobs explain {wanted}` says why'}"
            ) from cause
        if pause >= LONGEST_POLL_S:
            note.write()
        delay = pause * random.uniform(0.8, 1.2)
        await asyncio.sleep(delay if left is None else min(delay, left))
        pause = min(LONGEST_POLL_S, pause * _POLL_GROWTH)
