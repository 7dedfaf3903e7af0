"""Limits held for one call: who waits in this process, in order, and who asks for one."""

from __future__ import annotations

import asyncio
import contextlib
import random
from bisect import insort
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from laneway.engine.lease.attempt_store import AttemptStore
from laneway.engine.process.throttled_warnings import ThrottledWarnings
from laneway.engine.run.attempt import Run
from laneway.engine.run.handler_channel import after_finish
from laneway.errors import DatabaseUnavailable, SchemaMismatch
from laneway.store.call_limits import LimitGrant

FIRST_S = 0.05
LONGEST_S = 1.0
# A limit may be changed while a long period of its rate goes by.
LONGEST_RATE_S = 5.0
BUSY_S = 0.05


class HeldCalls:
    """How often one attempt holds each limit for a call, as far as it was told."""

    __slots__ = ("counts", "lock")

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        # One statement at a time: each says how many it is to be.
        self.lock = asyncio.Lock()


class _QueuedCall:
    """A place in the queue of one limit and lane."""

    __slots__ = ("is_first", "news", "rank")

    def __init__(self, rank: int, news: asyncio.Event) -> None:
        self.rank = rank
        self.is_first = asyncio.Event()
        self.news = news


class CallLimits:
    """Queues the calls of this process by limit and lane; only the first of each asks the ledger.

    Within a lane higher priority goes first, then first come, first served. Between lanes and
    processes the ledger decides whose turn it is.
    """

    def __init__(self, store: AttemptStore, warnings: ThrottledWarnings) -> None:
        self._store = store
        self._warnings = warnings
        self._queues: dict[tuple[str, str], list[_QueuedCall]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def acquire(self, run: Run, names: Sequence[str], inside: Mapping[str, int]) -> str:
        """Returns once the run holds all of them, or should not: granted, cancel_requested, fenced.

        Whoever gives up waiting leaves nothing behind. The names are sorted, as all queue for them.
        `inside`: how often each is held around this call already.
        """
        if inside:
            # Not behind those who may be waiting for what this one holds.
            grant = await self._ask(run, names, inside)
            if grant.answer not in ("full", "busy"):
                return grant.answer
        news = asyncio.Event()
        turns: list[tuple[str, _QueuedCall]] = []
        try:
            for name in names:
                turn = _QueuedCall(run.rank, news)
                turns.append((name, turn))
                await self._enter((name, run.lane), turn)
            return await self._take(run, names, inside, news)
        finally:
            for name, turn in turns:
                self._leave((name, run.lane), turn)

    async def release(self, run: Run, names: Sequence[str]) -> None:
        """Gives one of each back; done even if whoever asks is cancelled meanwhile."""
        await asyncio.shield(self._spawn(self._give(run, names, 1)))

    def hint(self) -> None:
        """Limits may have been given back with an attempt: the first of each queue asks at once."""
        for queue in self._queues.values():
            queue[0].news.set()

    async def close(self) -> None:
        """What is still to be given back goes with its lease."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _enter(self, place: tuple[str, str], turn: _QueuedCall) -> None:
        """Returns once the turn is the first of its queue; who is first stays so."""
        queue = self._queues.setdefault(place, [])
        insort(queue, turn, lo=min(1, len(queue)), key=lambda one: one.rank)
        if queue[0] is not turn:
            await turn.is_first.wait()

    def _leave(self, place: tuple[str, str], turn: _QueuedCall) -> None:
        queue = self._queues[place]
        was_first = queue[0] is turn
        queue.remove(turn)
        if not queue:
            del self._queues[place]
        elif was_first:
            queue[0].is_first.set()

    async def _take(
        self, run: Run, names: Sequence[str], inside: Mapping[str, int], news: asyncio.Event
    ) -> str:
        """Asks until there is room: at once after a release in this process, else now and then."""
        wait_s = FIRST_S
        while True:
            news.clear()
            if run.is_finishing:
                raise after_finish("limit")
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
                    await news.wait()

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
            # The answer may be lost though the write was not: it may be asked again.
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
        """Gives back what came too late, or may have been given though its answer was lost."""
        await asyncio.wait({asking})
        if asking.cancelled():
            return
        is_clear = asking.exception() is None
        granted = is_clear and asking.result().answer == "granted"
        if granted or not is_clear:
            await self._give(run, names, 1 if granted else 0)

    async def _give(self, run: Run, names: Sequence[str], fewer: int) -> None:
        held = run.held
        if held is None:
            return
        async with held.lock:
            held.counts.subtract(dict.fromkeys(names, fewer))
            # Once its end is told, or is being told in the handler's own transaction, which holds
            # the lease, they go with the attempt.
            while not (run.ended or run.is_finishing):
                keeps = {name: held.counts[name] for name in names}
                if await self._told(run, keeps) != "busy":
                    break
                await asyncio.sleep(BUSY_S)
        for (name, _), queue in self._queues.items():
            if name in names:
                queue[0].news.set()

    async def _told(self, run: Run, keeps: dict[str, int]) -> str:
        """busy: to be said again."""
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
