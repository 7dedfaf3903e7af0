"""Limits held for one call: queues the waiting calls of this process and acquires in order."""

from __future__ import annotations

import asyncio
import contextlib
import random
from bisect import insort
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from laneway.engine.lease.attempt_store import AttemptStore
from laneway.engine.run.attempt import Run
from laneway.engine.run.handler_channel import finished_error
from laneway.errors import DatabaseUnavailable, SchemaMismatch
from laneway.observability.log_throttle import LogThrottle
from laneway.store.call_limits import LimitGrant

FIRST_S = 0.05
LONGEST_S = 1.0
# Ask again at least this often: the limit may change during a long rate period.
LONGEST_RATE_S = 5.0
BUSY_S = 0.05


class HeldCalls:
    """The number of times one attempt holds each limit for a call, as last confirmed."""

    __slots__ = ("counts", "lock")

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        # One statement at a time: each one sets the absolute count.
        self.lock = asyncio.Lock()


class _QueuedCall:
    """A place in the queue of one limit and lane."""

    __slots__ = ("is_first", "rank", "retry_now")

    def __init__(self, rank: int, retry_now: asyncio.Event) -> None:
        self.rank = rank
        self.is_first = asyncio.Event()
        self.retry_now = retry_now


class CallLimits:
    """Queues the calls of this process by limit and lane; only the first of each asks the store.

    Within a lane, order is by priority, then first come, first served. The store decides between
    lanes and processes.
    """

    def __init__(self, store: AttemptStore, warnings: LogThrottle) -> None:
        self._store = store
        self._warnings = warnings
        self._queues: dict[tuple[str, str], list[_QueuedCall]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def acquire(self, run: Run, names: Sequence[str], inside: Mapping[str, int]) -> str:
        """Wait until the run holds all of them; return granted, cancel_requested or fenced.

        A cancelled wait leaves nothing held. `names` are sorted, so that calls cannot deadlock.
        `inside`: the number of times each is already held around this call.
        """
        if inside:
            # Skip the queue: the calls in it may be waiting for what this run holds.
            grant = await self._ask(run, names, inside)
            if grant.answer not in ("full", "busy"):
                return grant.answer
        retry_now = asyncio.Event()
        queued: list[tuple[str, _QueuedCall]] = []
        try:
            for name in names:
                call = _QueuedCall(run.rank, retry_now)
                queued.append((name, call))
                await self._enter((name, run.lane), call)
            return await self._take(run, names, inside, retry_now)
        finally:
            for name, call in queued:
                self._leave((name, run.lane), call)

    async def release(self, run: Run, names: Sequence[str]) -> None:
        """Release one of each; completes even if the caller is cancelled meanwhile."""
        await asyncio.shield(self._spawn(self._release(run, names, 1)))

    def hint(self) -> None:
        """Make the first call of each queue ask at once: an ended attempt may have freed limits."""
        for queue in self._queues.values():
            queue[0].retry_now.set()

    async def close(self) -> None:
        """Cancel pending releases: the end of the lease releases those limits."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _enter(self, key: tuple[str, str], call: _QueuedCall) -> None:
        """Wait until the call is first in its queue; the first call is never displaced."""
        queue = self._queues.setdefault(key, [])
        insort(queue, call, lo=min(1, len(queue)), key=lambda one: one.rank)
        if queue[0] is not call:
            await call.is_first.wait()

    def _leave(self, key: tuple[str, str], call: _QueuedCall) -> None:
        queue = self._queues[key]
        was_first = queue[0] is call
        queue.remove(call)
        if not queue:
            del self._queues[key]
        elif was_first:
            queue[0].is_first.set()

    async def _take(
        self, run: Run, names: Sequence[str], inside: Mapping[str, int], retry_now: asyncio.Event
    ) -> str:
        """Ask until there is room: at once after a release in this process, else with backoff."""
        wait_s = FIRST_S
        while True:
            retry_now.clear()
            if run.is_finishing:
                raise finished_error("limit")
            grant = await self._ask(run, names, inside)
            match grant.answer:
                case "full" if grant.wait_s is not None:
                    delay_s = min(grant.wait_s, LONGEST_RATE_S)
                case "full":
                    delay_s, wait_s = wait_s, min(wait_s * 1.5, LONGEST_S)
                case "busy":
                    delay_s = BUSY_S
                case answer:
                    return answer
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay_s * random.uniform(1.0, 1.2)):
                    await retry_now.wait()

    async def _ask(self, run: Run, names: Sequence[str], inside: Mapping[str, int]) -> LimitGrant:
        held = run.held = run.held or HeldCalls()
        asking = asyncio.ensure_future(self._granted(run, held, names, inside))
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            _ = self._spawn(self._undo(run, names, asking))
            raise
        except DatabaseUnavailable as error:
            if isinstance(error, SchemaMismatch) or run.stop_reason is not None:
                raise
            # The write may have succeeded without its answer. Asking again is safe.
            self._warnings.warn("limit", error)
            return LimitGrant("full", None)

    async def _granted(
        self, run: Run, held: HeldCalls, names: Sequence[str], inside: Mapping[str, int]
    ) -> LimitGrant:
        async with held.lock:
            wants = {name: held.counts[name] + 1 for name in names}
            grant = await self._store.acquire(run.claim, wants, inside)
            if grant.answer == "granted":
                held.counts.update(wants.keys())
        return grant

    async def _undo(
        self, run: Run, names: Sequence[str], asking: asyncio.Future[LimitGrant]
    ) -> None:
        """Release a grant that came too late, or one whose answer was lost."""
        await asyncio.wait({asking})
        if asking.cancelled():
            return
        is_clear = asking.exception() is None
        granted = is_clear and asking.result().answer == "granted"
        if granted or not is_clear:
            await self._release(run, names, 1 if granted else 0)

    async def _release(self, run: Run, names: Sequence[str], fewer: int) -> None:
        held = run.held
        if held is None:
            return
        async with held.lock:
            held.counts.subtract(dict.fromkeys(names, fewer))
            # The end of the attempt releases its limits. A handler's own finish transaction locks
            # the lease, so do not wait for it here.
            while not (run.ended or run.is_finishing):
                keeps = {name: held.counts[name] for name in names}
                if await self._write_release(run, keeps) != "busy":
                    break
                await asyncio.sleep(BUSY_S)
        for (name, _), queue in self._queues.items():
            if name in names:
                queue[0].retry_now.set()

    async def _write_release(self, run: Run, keeps: dict[str, int]) -> str:
        try:
            return await self._store.release(run.claim, keeps)
        except DatabaseUnavailable as error:
            self._warnings.warn("limit", error)
            return "busy"

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name="laneway limit")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
