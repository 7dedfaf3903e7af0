"""Polls for the end of a job or a flow."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar
from uuid import UUID

from laneway.client.wait_note import noting
from laneway.domain.duration import check_wait
from laneway.domain.states import TERMINAL, Status, label_of
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
T = TypeVar("T")


class PollResult(NamedTuple, Generic[T]):
    """One poll of what is waited for: its value, its status, and whether that is the last one."""

    value: T
    status: str
    is_over: bool


async def end_of(
    database: Database, wanted: UUID, timeout: float | timedelta | None, cure: str | None = None
) -> Ended:
    """Waits until the job has ended; TimeoutError, with the cure, after `timeout` seconds.

    A wait inside a handler is noted once it polls slowly.
    """

    async def look() -> PollResult[Ended]:
        found = await database.run(jobs.wait(wanted))
        if found is None:
            raise NotFound(f"no job {wanted}")
        return PollResult(found, _described(found[0]), Status(found[0]) in TERMINAL)

    cure = cure or f"`laneway jobs explain {wanted}` says why"
    with noting(database, wanted) as note:
        return await poll(look, f"job {wanted}", timeout, cure, note.write)


async def poll(
    look: Callable[[], Awaitable[PollResult[T]]],
    subject: str,
    timeout: float | timedelta | None,
    cure: str,
    when_slow: Callable[[], object] = lambda: None,
) -> T:
    """Looks until it is over; TimeoutError, with the cure, after `timeout` seconds.

    While the database is unreachable, it keeps waiting.
    """
    loop = asyncio.get_running_loop()
    timeout_s = None if timeout is None else check_wait(timeout, "timeout")
    deadline = None if timeout_s is None else loop.time() + timeout_s
    pause = SHORTEST_POLL_S
    status = "its status could not be read"
    while True:
        cause: DatabaseUnavailable | None = None
        left = None if deadline is None else deadline - loop.time()
        try:
            # Even `timeout=0` gets one query.
            query_s = None if left is None else max(left, _SHORTEST_QUERY_S)
            async with asyncio.timeout(query_s):
                found = await look()
            if found.is_over:
                return found.value
            status = f"its status is {found.status}"
        except (SchemaMismatch, UnsuitableDatabase):
            raise
        except DatabaseUnavailable as error:
            cause = error
        except TimeoutError:
            pass
        left = None if deadline is None else deadline - loop.time()
        if left is not None and left <= 0:
            raise TimeoutError(
                f"{subject} did not end within {timeout_s:g} s: {status}; {cure}"
            ) from cause
        if pause >= LONGEST_POLL_S:
            when_slow()
        delay = pause * random.uniform(0.8, 1.2)
        await asyncio.sleep(delay if left is None else min(delay, left))
        pause = min(LONGEST_POLL_S, pause * _POLL_GROWTH)


def _described(status: str) -> str:
    """`approved (queued)`: the status, and the word that commands show for it, if it is another."""
    label = label_of(Status(status), None)
    return status if label == status else f"{status} ({label})"
