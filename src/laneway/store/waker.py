"""Coalesced wake-ups after commit, so that commits do not queue behind NOTIFY's lock."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import AsyncExitStack

from laneway.domain.approval import analysis_of
from laneway.domain.job import NewJob
from laneway.errors import DatabaseUnavailable, LanewayError
from laneway.observability.safe_logger import SafeLogger
from laneway.store import local_notify, notify
from laneway.store.database import Database, run_on
from laneway.store.jobs import SubmitResult
from laneway.store.silence import or_hang_up
from laneway.store.submit_and_wake import SubmitAndWake

log = SafeLogger(__name__)

CLOSE_TIMEOUT_S = 1.0
# Number of wake-ups within an interval that counts as a flood.
_FLOOD = 10
_FLOOD_INTERVALS = 4


class Waker:
    """Wakes listening workers: at once or after `delay_ms` when quiet, else once per interval.

    In a flood less often: workers that found jobs poll again anyway. A wake-up that cannot be sent
    is dropped, because workers poll. Belongs to one event loop.
    """

    def __init__(self, database: Database, interval_ms: int = 5, *, delay_ms: int = 0) -> None:
        self._database = database
        self._interval = interval_ms / 1000
        self._delay = delay_ms / 1000
        self._types: set[str] = set()
        self._wakes = 0
        self._task: asyncio.Task[None] | None = None
        # Sends the wake-up of a submit that sent it along.
        self._following: asyncio.Task[None] | None = None
        self._is_submitting = False
        self._is_failing = False

    def wake(self, job_types: Iterable[str]) -> None:
        """Schedules a wake-up for these job types and returns; it uses another connection."""
        self._types.update(job_types)
        self._wakes += 1
        self._start()

    def _start(self) -> None:
        if self._types and self._task is None and self._following is None:
            self._task = asyncio.create_task(self._send_pending(), name="laneway waker")
            self._task.add_done_callback(self._on_end)

    def _on_end(self, task: asyncio.Task[None]) -> None:
        # Not in the task itself, which never begins if it is cancelled at once.
        if task is self._task:
            self._task = None
        else:
            self._following = None
        # A cancelled task means that the program or its event loop ends.
        if not task.cancelled():
            self._start()

    async def submit(self, job: NewJob) -> SubmitResult | None:
        """Submits a job and wakes its workers in one message to the server.

        Returns None without a submit if other wake-ups are due at the same time, or if there is no
        open connection that can do it.
        """
        is_quiet = self._task is None and self._following is None and not self._is_submitting
        if not is_quiet or self._database.idle == 0 or self._database.is_pooled:
            return None
        self._is_submitting = True
        try:
            async with AsyncExitStack() as stack:
                try:
                    conn = await stack.enter_async_context(self._database.connection())
                except DatabaseUnavailable:
                    # The connection was lost before, and no other could be opened.
                    return None
                sent = SubmitAndWake(conn)
                made = await sent.submit(job)
                if made is not None:
                    rest = self._finish(sent, stack.pop_all(), _claim_types(job, made))
                    self._following = asyncio.create_task(rest, name="laneway wake-up")
                    self._following.add_done_callback(self._on_end)
        finally:
            self._is_submitting = False
        local_notify.publish("jobs/submit_job")
        return made

    async def _finish(
        self, sent: SubmitAndWake, connection: AsyncExitStack, job_types: set[str]
    ) -> None:
        try:
            async with connection:
                await or_hang_up(sent.conn, sent.finish())
            # Wake-ups during this pause are sent together after it.
            await asyncio.sleep(self._interval)
        except LanewayError:
            # Try once more, on another connection.
            self._types.update(job_types)

    @classmethod
    def of_peers(cls, database: Database) -> Waker:
        """Wakes other workers for jobs that a worker leaves to them, at most once per 50 ms."""
        return cls(database, 0, delay_ms=50)

    async def close(self, *, send: bool = True) -> None:
        """Sends pending wake-ups, if that is possible within a second; `send=False`: drops them."""
        loop = asyncio.get_running_loop()
        until = loop.time() + (CLOSE_TIMEOUT_S if send else 0.0)
        while tasks := {task for task in (self._following, self._task) if task is not None}:
            _, late = await asyncio.wait(tasks, timeout=max(0.0, until - loop.time()))
            if late:
                self._types.clear()
                for task in late:
                    task.cancel()
                await asyncio.wait(late)

    async def _send_pending(self) -> None:
        while self._types:
            if self._delay:
                await asyncio.sleep(self._delay)
            types, self._types = self._types, set()
            pause = self._interval * (_FLOOD_INTERVALS if self._wakes >= _FLOOD else 1)
            self._wakes = 0
            await self._send(notify.wake_message(types))
            # Wake-ups during this pause are sent together after it.
            await asyncio.sleep(pause)

    async def _send(self, message: str) -> None:
        try:
            async with self._database.connection() as conn:
                await or_hang_up(conn, run_on(conn, notify.wake(message)))
            self._is_failing = False
        except LanewayError as error:
            # Not when the program is closing.
            if not self._is_failing and not self._database.is_closed:
                log.warning("cannot send wake-ups, jobs start at the next poll: %s", error)
            self._is_failing = True


def _claim_types(job: NewJob, made: SubmitResult) -> set[str]:
    """The job type by which workers claim the job now, if they can."""
    if made.duplicate or made.status not in ("approved", "pending"):
        return set()
    return {analysis_of(job.job_type) if made.status == "pending" else job.job_type}
