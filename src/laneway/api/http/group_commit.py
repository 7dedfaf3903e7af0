"""Commits submits that arrive together in one transaction, so that they share one disk flush."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Coroutine, Generator
from contextvars import Context
from types import coroutine
from typing import Any, Final

from laneway.api.http.full_principals import FullPrincipals
from laneway.domain.actor import Actor
from laneway.domain.job import Job, NewJob
from laneway.errors import DatabaseUnavailable, LanewayError, QuotaExceeded
from laneway.store import grouped_submit as store
from laneway.store.database import Database
from laneway.store.quotas import Quota

# Submits per commit; fewer at the end of an iteration of the event loop.
FULL: Final = 24
MOST_BYTES: Final = 1024 * 1024
# Commits in progress at a time; the server handles other requests meanwhile.
AT_ONCE: Final = 4


class _PendingSubmit:
    """One submit and the future of its stored job."""

    __slots__ = ("actor", "job", "quota", "stored")

    def __init__(self, job: NewJob, actor: Actor, quota: Quota | None) -> None:
        self.job = job
        self.actor = actor
        self.quota = quota
        self.stored: asyncio.Future[Job] = asyncio.get_running_loop().create_future()


class GroupCommit:
    """Stores pending submits when a commit is free: a single one immediately, many under load."""

    def __init__(self, database: Database, full: FullPrincipals | None = None) -> None:
        self._database = database
        self._pending: deque[_PendingSubmit] = deque()
        self._commits: set[asyncio.Task[None]] = set()
        self._is_due = False
        # Submits of these principals are committed separately.
        self._full = FullPrincipals() if full is None else full

    async def submit(self, job: NewJob, actor: Actor, quota: Quota | None = None) -> Job:
        """Store a job without a unique_key, together with its audit entry."""
        submit = _PendingSubmit(job, actor, quota)
        if quota is not None and quota.principal_id in self._full:
            await self._commit([submit])
            return await submit.stored
        self._pending.append(submit)
        if len(self._pending) >= FULL:
            self._start()
        elif not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._end_turn)
        return await submit.stored

    async def close(self) -> None:
        """Wait for the commits in progress."""
        while self._commits:
            await asyncio.wait(self._commits)

    def _end_turn(self) -> None:
        self._is_due = False
        self._start()

    def _start(self) -> None:
        while self._pending and len(self._commits) < AT_ONCE:
            task = _start_eagerly(self._commit(self._take()))
            if task is not None:
                self._commits.add(task)
                task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._commits.discard(task)
        self._start()

    def _take(self) -> list[_PendingSubmit]:
        batch: list[_PendingSubmit] = []
        size = 0
        while self._pending and len(batch) < FULL and size < MOST_BYTES:
            submit = self._pending.popleft()
            size += len(submit.job.payload)
            batch.append(submit)
        return batch

    async def _commit(self, batch: list[_PendingSubmit]) -> None:
        try:
            await self._store(batch)
        except DatabaseUnavailable as error:
            _fail(batch, error)
        except LanewayError as error:
            if len(batch) == 1:
                quota = batch[0].quota
                if quota is not None and isinstance(error, QuotaExceeded):
                    self._full.note(quota.principal_id)
                _fail(batch, error)
                return
            # One refused submit rolled back all of them: commit each separately.
            for submit in batch:
                await self._commit([submit])
        except Exception as error:
            # A bug: every request reports it.
            _fail(batch, error)
        except BaseException as error:
            _fail(batch, error)
            raise

    async def _store(self, batch: list[_PendingSubmit]) -> None:
        requests = [(submit.job, submit.actor, submit.quota) for submit in batch]
        jobs = await self._database.run(store.submit(requests))
        for submit, job in zip(batch, jobs, strict=True):
            if not submit.stored.done():
                submit.stored.set_result(job)


def _fail(batch: list[_PendingSubmit], error: BaseException) -> None:
    for submit in batch:
        if not submit.stored.done():
            submit.stored.set_exception(error)


def _start_eagerly(work: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
    """Run a coroutine to its first wait and return its task; None: it has finished.

    A normal task would start after all requests that were read in this iteration, and leave the
    database idle until then. Its empty context keeps request ids out of its log lines.
    """
    context = Context()
    loop = asyncio.get_running_loop()
    if sys.version_info >= (3, 12):
        return asyncio.Task(work, loop=loop, context=context, eager_start=True)
    try:
        first = context.run(work.send, None)
    except StopIteration:
        return None
    return loop.create_task(_rest(work, first), context=context)


@coroutine
def _rest(work: Coroutine[Any, Any, None], waited_for: Any) -> Generator[Any, Any, None]:
    try:
        while True:
            try:
                result = yield waited_for
            except BaseException as error:
                waited_for = work.throw(error)
            else:
                waited_for = work.send(result)
    except StopIteration:
        return
