"""The `ctx` of a handler: its job, progress, checkpoints, steps, waits, limits and cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Sized,
)
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, Generic, NoReturn, TypeAlias, TypeVar, overload

from laneway.domain.held_limits import count_held, mark_held
from laneway.domain.result_type import UNSET
from laneway.engine.run.call_check import checked_call
from laneway.engine.run.call_retry import CallRetryOptions, call, call_blocking
from laneway.engine.run.handler_channel import Interrupted
from laneway.engine.run.steps import run_to_completion
from laneway.engine.run.wait_calls import AsyncWaitCalls, SyncWaitCalls
from laneway.errors import InvalidInput

T = TypeVar("T")
CANCEL_S = 1.0
# The right forms that errors of wrong calls name.
STEP: Final = 'ctx.step("name", fn, *args)'
RETRY: Final = "ctx.retry(fn, *args)"
PROGRESS: Final = "ctx.progress(done, total, message)"
SAVE: Final = "ctx.save(state)"
GUARD: Final = "ctx.guard(conn)"
FINISH: Final = "ctx.finish(conn=conn, result=result)"
TRACK: Final = "ctx.track(items)"


def _limit_names(names: tuple[str, ...]) -> list[str]:
    if not names or not all(isinstance(name, str) for name in names):
        raise InvalidInput("limit", "must be the name of a limit, or several")
    return sorted(set(names))


def _length(items: object, total: int | None) -> int | None:
    if total is None and isinstance(items, Sized):
        return len(items)
    return total


class _TrackedItems(AsyncIterator[T], Generic[T]):
    """An async generator that a plain `for` refuses by name."""

    __slots__ = ("_items",)

    def __init__(self, items: AsyncGenerator[T, None]) -> None:
        self._items = items

    # The generator itself: this wrapper costs nothing per item.
    def __aiter__(self) -> AsyncGenerator[T, None]:
        return self._items

    async def __anext__(self) -> T:
        return await anext(self._items)

    async def aclose(self) -> None:
        await self._items.aclose()

    def __iter__(self) -> NoReturn:
        raise TypeError(
            "ctx.track in an async def needs async for: write `async for item in ctx.track(items)`"
        )


async def _each(items: Iterable[T] | AsyncIterable[T]) -> AsyncGenerator[T, None]:
    """The items one by one, of an iterable of either kind."""
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


class Context(AsyncWaitCalls):
    """The `ctx` of an `async def` handler; a plain one gets a SyncContext with the same names."""

    __slots__ = ()

    @checked_call(PROGRESS)
    async def progress(
        self,
        done: float | None = None,
        total: float | None = None,
        message: str | None = None,
        *,
        stage: str | None = None,
    ) -> None:
        """Report progress; stored within half a second."""
        self._report(done, total, message, stage)

    @checked_call(SAVE)
    async def save(self, state: Any) -> None:
        """Store a checkpoint; when this returns, the next attempt will see it."""
        self._check_open("save")
        self._saved.state = state
        self._channel.report(checkpoint=self._saved.text())
        await self._channel.ask("flush")

    @overload
    async def step(
        self,
        name: str,
        fn: Callable[..., Awaitable[T]],
        /,
        *args: Any,
        returns: Any = ...,
        **kwargs: Any,
    ) -> T: ...
    @overload
    async def step(
        self, name: str, fn: Callable[..., T], /, *args: Any, returns: Any = ..., **kwargs: Any
    ) -> T: ...
    @checked_call(STEP)
    async def step(
        self, name: str, fn: Callable[..., Any], /, *args: Any, returns: Any = UNSET, **kwargs: Any
    ) -> Any:
        """Run fn once per job and store its result; later attempts get it without a call.

        The result is stored as JSON and read back as the type of fn's return hint or `returns`. fn
        may be plain or async; a plain one runs on the event loop.
        """
        self._check_open("step")
        return await self._steps.run(name, fn, args, kwargs, returns)

    @checked_call(RETRY)
    async def retry(self, fn: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
        """Call fn until it succeeds, with backoff; see `CallRetryOptions.split` for `options`."""
        retry_options, kwargs = CallRetryOptions.split(options)
        return await call(self._channel, fn, args, kwargs, retry_options)

    @asynccontextmanager
    async def limit(self, *names: str) -> AsyncIterator[None]:
        """Hold one of each named limit inside `async with`, waiting for them if needed."""
        claim, taken = self._channel.claim, _limit_names(names)
        self._check_open("limit")
        await self._channel.ask("acquire", names=taken, inside=count_held(claim, taken))
        try:
            with mark_held(claim, taken):
                yield
        finally:
            await run_to_completion(self._channel.ask("release", names=taken))

    @checked_call(GUARD)
    async def guard(self, conn: object) -> None:
        """Make sure that this attempt is still the running one when your transaction commits.

        Raises StaleAttempt, or ends the handler, if it is not; `conn` is your connection.
        """
        await self._check_answer(await self._transaction.guard(conn))

    @checked_call(FINISH)
    async def finish(self, *, conn: object, result: Any = None) -> None:
        """Complete the job in your transaction: both commit, or neither."""
        answer = await self._transaction.finish(conn, result)
        if answer != "finished":
            await self._check_answer(answer)

    async def _check_answer(self, answer: str) -> None:
        if answer != "held":
            await self._channel.ask("refused", answer=answer)
            # The worker cancels this sleep. Raising at once would cancel the handler twice.
            await asyncio.sleep(CANCEL_S)
            raise asyncio.CancelledError("cancel requested")

    @checked_call(TRACK)
    def track(
        self,
        items: Iterable[T] | AsyncIterable[T],
        *,
        total: int | None = None,
        name: str = "items",
        durable: bool = False,
    ) -> AsyncIterator[T]:
        """Iterate over items with progress, a checkpoint and a cancellation point at each.

        A later attempt continues after the last item stored. Positions are stored within half a
        second, so a crash may repeat the last few items; `durable=True` stores each one first.
        """
        return _TrackedItems(self._track(items, total, name, durable))

    async def _track(
        self, items: Iterable[T] | AsyncIterable[T], total: int | None, name: str, durable: bool
    ) -> AsyncGenerator[T, None]:
        count, reached = _length(items, total), self._saved.tracked.get(name, 0)
        position = 0
        async for item in _each(items):
            position += 1
            if position <= reached:
                continue
            yield item
            self._report_position(name, position, count)
            if durable:
                await self._channel.ask("flush")
            else:
                await asyncio.sleep(0)


class SyncContext(SyncWaitCalls):
    """The `ctx` of a plain `def` handler, in a thread or a child process."""

    __slots__ = ()

    @checked_call(PROGRESS)
    def progress(
        self,
        done: float | None = None,
        total: float | None = None,
        message: str | None = None,
        *,
        stage: str | None = None,
    ) -> None:
        """Report progress; stored within half a second."""
        self.check()
        self._report(done, total, message, stage)

    @checked_call(SAVE)
    def save(self, state: Any) -> None:
        """Store a checkpoint; when this returns, the next attempt will see it."""
        self.check()
        self._check_open("save")
        self._saved.state = state
        self._channel.report(checkpoint=self._saved.text())
        self._channel.ask_blocking("flush")

    @checked_call(STEP)
    def step(
        self, name: str, fn: Callable[..., T], /, *args: Any, returns: Any = UNSET, **kwargs: Any
    ) -> T:
        """Run fn once per job and store its result; later attempts get it without a call."""
        self.check()
        self._check_open("step")
        result: T = self._steps.run_blocking(name, fn, args, kwargs, returns)
        self.check()
        return result

    @checked_call(RETRY)
    def retry(self, fn: Callable[..., T], /, *args: Any, **options: Any) -> T:
        """Call fn until it succeeds, with backoff; stop if the handler should stop."""
        retry_options, kwargs = CallRetryOptions.split(options)
        result: T = call_blocking(self._channel, self.check, fn, args, kwargs, retry_options)
        return result

    @contextmanager
    def limit(self, *names: str) -> Iterator[None]:
        """Hold one of each named limit inside `with`, waiting for them if needed."""
        self.check()
        claim, taken = self._channel.claim, _limit_names(names)
        self._check_open("limit")
        self._channel.ask_blocking("acquire", names=taken, inside=count_held(claim, taken))
        try:
            self.check()
            with mark_held(claim, taken):
                yield
        finally:
            self._channel.ask_blocking("release", names=taken)

    @checked_call(GUARD)
    def guard(self, conn: object) -> None:
        """Make sure that this attempt is still the running one when your transaction commits."""
        self.check()
        self._check_answer(self._transaction.guard_blocking(conn))

    @checked_call(FINISH)
    def finish(self, *, conn: object, result: Any = None) -> None:
        """Complete the job in your transaction: both commit, or neither."""
        self.check()
        answer = self._transaction.finish_blocking(conn, result)
        if answer != "finished":
            self._check_answer(answer)

    def _check_answer(self, answer: str) -> None:
        if answer != "held":
            self._channel.ask_blocking("refused", answer=answer)
            self.check()
            raise Interrupted("cancel")

    @checked_call(TRACK)
    def track(
        self,
        items: Iterable[T],
        *,
        total: int | None = None,
        name: str = "items",
        durable: bool = False,
    ) -> Iterator[T]:
        """Iterate over items with progress, a checkpoint and a cancellation point at each."""
        count, reached = _length(items, total), self._saved.tracked.get(name, 0)
        for position, item in enumerate(items, 1):
            if position <= reached:
                continue
            self.check()
            yield item
            self._report_position(name, position, count)
            if durable:
                self._channel.ask_blocking("flush")
        self.check()


AnyContext: TypeAlias = Context | SyncContext
