"""Submits that arrive together share a commit: waiting for the disk once serves them all."""

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

# So many are sent off at once; fewer at the end of a turn of the loop.
FULL: Final = 24
MOST_BYTES: Final = 1024 * 1024
# Others are read and answered while these are on their way to the disk.
AT_ONCE: Final = 4


class _Waiting:
    """One request and what becomes of it."""

    __slots__ = ("actor", "job", "quota", "stored")

    def __init__(self, job: NewJob, actor: Actor, quota: Quota | None) -> None:
        self.job = job
        self.actor = actor
        self.quota = quota
        self.stored: asyncio.Future[Job] = asyncio.get_running_loop().create_future()


class GroupCommit:
    """Stores what waits whenever a commit is free: alone at once, under load many at a time."""

    def __init__(self, database: Database, full: FullPrincipals | None = None) -> None:
        self._database = database
        self._waiting: deque[_Waiting] = deque()
        self._commits: set[asyncio.Task[None]] = set()
        self._is_due = False
        # Each of their requests is tried by itself.
        self._full = FullPrincipals() if full is None else full

    async def submit(self, job: NewJob, actor: Actor, quota: Quota | None = None) -> Job:
        """The job as it is stored, together with its act; it has no unique_key."""
        one = _Waiting(job, actor, quota)
        if quota is not None and quota.principal_id in self._full:
            await self._commit([one])
            return await one.stored
        self._waiting.append(one)
        if len(self._waiting) >= FULL:
            self._start()
        elif not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._end_turn)
        return await one.stored

    async def close(self) -> None:
        """Waits for the commits under way."""
        while self._commits:
            await asyncio.wait(self._commits)

    def _end_turn(self) -> None:
        self._is_due = False
        self._start()

    def _start(self) -> None:
        while self._waiting and len(self._commits) < AT_ONCE:
            task = _begun(self._commit(self._take()))
            if task is not None:
                self._commits.add(task)
                task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._commits.discard(task)
        self._start()

    def _take(self) -> list[_Waiting]:
        some: list[_Waiting] = []
        size = 0
        while self._waiting and len(some) < FULL and size < MOST_BYTES:
            one = self._waiting.popleft()
            size += len(one.job.payload)
            some.append(one)
        return some

    async def _commit(self, some: list[_Waiting]) -> None:
        try:
            await self._store(some)
        except DatabaseUnavailable as error:
            _tell(some, error)
        except LanewayError as error:
            if len(some) == 1:
                quota = some[0].quota
                if quota is not None and isinstance(error, QuotaExceeded):
                    self._full.note(quota.principal_id)
                _tell(some, error)
                return
            # One of them was refused and took the others along: each by itself, then.
            for one in some:
                await self._commit([one])
        except Exception as error:
            # A mistake of ours: each request tells of it.
            _tell(some, error)
        except BaseException as error:
            _tell(some, error)
            raise

    async def _store(self, some: list[_Waiting]) -> None:
        requests = [(one.job, one.actor, one.quota) for one in some]
        jobs = await self._database.run(store.submit(requests))
        for one, job in zip(some, jobs, strict=True):
            if not one.stored.done():
                one.stored.set_result(job)


def _tell(some: list[_Waiting], error: BaseException) -> None:
    for one in some:
        if not one.stored.done():
            one.stored.set_exception(error)


def _begun(work: Coroutine[Any, Any, None]) -> asyncio.Task[None] | None:
    """A task that has come to its first wait; None: it has ended already.

    A task of the loop would begin behind all requests that were read in this turn, and the database
    would have nothing to do until then. It is nobody's request: what it does and logs bears the
    name of none.
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
                answer = yield waited_for
            except BaseException as error:
                waited_for = work.throw(error)
            else:
                waited_for = work.send(answer)
    except StopIteration:
        return
