"""What a handler holds: its job, and the ways to report, to remember, and to notice the end."""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Sized,
)
from contextlib import asynccontextmanager, contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar, overload
from uuid import UUID

from laneway.domain.held_limits import held_around, inside
from laneway.domain.payload import PayloadLimits, encode
from laneway.domain.redaction import redact
from laneway.domain.step_results import UNSAID
from laneway.domain.text import escape_text
from laneway.engine.run.call_retry import CallRetryOptions, call, call_blocking
from laneway.engine.run.handler_channel import HandlerChannel, Interrupted, Log, after_finish
from laneway.engine.run.steps import Steps, to_the_end
from laneway.errors import InvalidInput

if TYPE_CHECKING:
    from laneway.engine.run.handler_transaction import HandlerTransaction

T = TypeVar("T")
TRACKED = "_tracked"
LARGEST = 1e100
CANCEL_S = 1.0


class _Memory:
    """The checkpoint as the handler sees it, and the places its tracks have reached beside it."""

    __slots__ = ("_limits", "state", "tracked")

    def __init__(self, checkpoint: Any, limits: PayloadLimits) -> None:
        self._limits = limits
        self.state = checkpoint
        self.tracked: dict[str, int] = {}
        if isinstance(checkpoint, dict) and isinstance(checkpoint.get(TRACKED), dict):
            self.tracked = {k: v for k, v in checkpoint[TRACKED].items() if isinstance(v, int)}
            self.state = {k: v for k, v in checkpoint.items() if k != TRACKED} or None

    def text(self) -> str:
        """Both as JSON text."""
        if not self.tracked:
            return encode(self.state, limits=self._limits, field="checkpoint")
        if self.state is not None and not isinstance(self.state, dict):
            raise InvalidInput(
                "checkpoint", "must be an object (a dict) in a handler that uses ctx.track"
            )
        return encode(
            {**(self.state or {}), TRACKED: self.tracked}, limits=self._limits, field="checkpoint"
        )


class _Common:
    __slots__ = ("_channel", "_log", "_memory", "_own", "_steps")

    def __init__(self, channel: HandlerChannel) -> None:
        self._channel = channel
        self._memory: _Memory | None = None
        self._log: Log | None = None
        self._steps: Steps | None = None
        self._own: HandlerTransaction | None = None

    @property
    def job_id(self) -> UUID:
        return self._channel.claim.job_id

    @property
    def attempt(self) -> int:
        """The number of this claim: 1 for the first start."""
        return self._channel.claim.attempt

    @property
    def payload(self) -> Any:
        return self._channel.payload

    @property
    def checkpoint(self) -> Any:
        """What `save` stored last, in this attempt or an earlier one; None at first."""
        return self._remembered.state

    @property
    def resources(self) -> SimpleNamespace:
        """What `on_start` loaded in this process."""
        return self._channel.resources

    @property
    def cancelled(self) -> bool:
        """True once the handler should stop: cancelled, late, superseded or shutting down."""
        return self._channel.stop_reason is not None

    @property
    def log(self) -> Log:
        if self._log is None:
            self._log = Log(self._channel)
        return self._log

    @property
    def has_finished(self) -> bool:
        """True once `finish` was answered, committed or not."""
        return self._own is not None and self._own.has_finished

    @property
    def _my_steps(self) -> Steps:
        if self._steps is None:
            self._steps = Steps(self._channel)
        return self._steps

    @property
    def _own_transaction(self) -> HandlerTransaction:
        if self._own is None:
            # With it comes the driver, which a child process may never need.
            from laneway.engine.run.handler_transaction import HandlerTransaction

            self._own = HandlerTransaction(self._channel)
        return self._own

    @property
    def _remembered(self) -> _Memory:
        if self._memory is None:
            self._memory = _Memory(self._channel.checkpoint, self._channel.limits)
        return self._memory

    def _check_open(self, verb: str) -> None:
        if self.has_finished:
            raise after_finish(verb)

    def _report(
        self, done: float | None, total: float | None, message: str | None, stage: str | None
    ) -> None:
        self._channel.report(
            stage=escape_text(redact(stage))[:256] if stage is not None else None,
            done=_number("done", done),
            total=_number("total", total),
            message=escape_text(redact(message))[:1024] if message is not None else None,
        )

    def _reached(self, name: str, place: int, total: int | None) -> None:
        self._remembered.tracked[name] = place
        self._channel.report(
            done=float(place),
            total=None if total is None else float(total),
            checkpoint=self._remembered.text(),
        )


def _limit_names(names: tuple[str, ...]) -> list[str]:
    if not names or not all(isinstance(name, str) for name in names):
        raise InvalidInput("limit", "must be the name of a limit, or several")
    return sorted(set(names))


def _number(field: str, value: float | None) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidInput(field, "must be a number")
    if not abs(value) <= LARGEST:
        raise InvalidInput(field, f"must be finite, at most {LARGEST:g}")
    # A percentage is made of two of these: neither may be as large or as small as a float can be.
    return round(float(value), 9)


def _length(items: object, total: int | None) -> int | None:
    if total is None and isinstance(items, Sized):
        return len(items)
    return total


class Context(_Common):
    """What an `async def` handler holds; plain ones get a SyncContext: same names, plain calls."""

    __slots__ = ()

    async def progress(
        self,
        done: float | None = None,
        total: float | None = None,
        message: str | None = None,
        *,
        stage: str | None = None,
    ) -> None:
        """Says how far the work is; stored within half a second."""
        self._report(done, total, message, stage)

    async def save(self, state: Any) -> None:
        """Stores a checkpoint; once it returns, the next attempt will see it."""
        self._check_open("save")
        self._remembered.state = state
        self._channel.report(checkpoint=self._remembered.text())
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
    async def step(
        self, name: str, fn: Callable[..., Any], /, *args: Any, returns: Any = UNSAID, **kwargs: Any
    ) -> Any:
        """Runs fn once per job and remembers its result; later attempts get it without a call.

        The result is JSON, read back as fn's return hint or `returns` says. fn may be a plain
        function or async; a plain one runs on the event loop.
        """
        self._check_open("step")
        return await self._my_steps.run(name, fn, args, kwargs, returns)

    async def retry(self, fn: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
        """Calls fn until it succeeds, with a growing pause; `options` as in `Patience.split`."""
        retry_options, kwargs = CallRetryOptions.split(options)
        return await call(self._channel, fn, args, kwargs, retry_options)

    @asynccontextmanager
    async def limit(self, *names: str) -> AsyncIterator[None]:
        """Holds one of each limit named inside of `async with`, waiting for its turn."""
        claim, taken = self._channel.claim, _limit_names(names)
        self._check_open("limit")
        await self._channel.ask("acquire", names=taken, inside=held_around(claim, taken))
        try:
            with inside(claim, taken):
                yield
        finally:
            await to_the_end(self._channel.ask("release", names=taken))

    async def guard(self, conn: object) -> None:
        """Makes sure that this attempt is still the running one when your transaction commits.

        Raises StaleAttempt, or ends the handler, if it is not; `conn` is your connection.
        """
        await self._met(await self._own_transaction.guard(conn))

    async def finish(self, *, conn: object, result: Any = None) -> None:
        """Completes the job in your transaction: with what you wrote there, or not at all."""
        answer = await self._own_transaction.finish(conn, result)
        if answer != "finished":
            await self._met(answer)

    async def _met(self, answer: str) -> None:
        if answer != "held":
            await self._channel.ask("met", answer=answer)
            # The worker cancels this handler now: once, so that what it cleans up is not disturbed.
            await asyncio.sleep(CANCEL_S)
            raise asyncio.CancelledError("cancel requested")

    async def track(
        self,
        items: Iterable[T] | AsyncIterable[T],
        *,
        total: int | None = None,
        name: str = "items",
        durable: bool = False,
    ) -> AsyncIterator[T]:
        """Goes through items with progress, checkpoint and a place to stop at each of them.

        A later attempt goes on behind the last item stored. Places are stored within half a
        second, so a crash may repeat the last few items; `durable=True` stores each one first.
        """
        count, reached = _length(items, total), self._remembered.tracked.get(name, 0)
        place = 0
        async for item in _each(items):
            place += 1
            if place <= reached:
                continue
            yield item
            self._reached(name, place, count)
            if durable:
                await self._channel.ask("flush")
            else:
                await asyncio.sleep(0)


async def _each(items: Iterable[T] | AsyncIterable[T]) -> AsyncIterator[T]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


class SyncContext(_Common):
    """What a plain `def` handler holds, in a thread or a child process."""

    __slots__ = ()

    def check(self) -> None:
        """Ends the handler here if it should stop; every other call checks too."""
        if self._channel.stop_reason is not None:
            raise Interrupted(self._channel.stop_reason)

    def progress(
        self,
        done: float | None = None,
        total: float | None = None,
        message: str | None = None,
        *,
        stage: str | None = None,
    ) -> None:
        """Says how far the work is; stored within half a second."""
        self.check()
        self._report(done, total, message, stage)

    def save(self, state: Any) -> None:
        """Stores a checkpoint; once it returns, the next attempt will see it."""
        self.check()
        self._check_open("save")
        self._remembered.state = state
        self._channel.report(checkpoint=self._remembered.text())
        self._channel.ask_blocking("flush")

    def step(
        self, name: str, fn: Callable[..., T], /, *args: Any, returns: Any = UNSAID, **kwargs: Any
    ) -> T:
        """Runs fn once per job and remembers its result; later attempts get it without a call."""
        self.check()
        self._check_open("step")
        result: T = self._my_steps.run_blocking(name, fn, args, kwargs, returns)
        self.check()
        return result

    def retry(self, fn: Callable[..., T], /, *args: Any, **options: Any) -> T:
        """Calls fn until it succeeds, with a growing pause; stops where the handler should stop."""
        retry_options, kwargs = CallRetryOptions.split(options)
        result: T = call_blocking(self._channel, self.check, fn, args, kwargs, retry_options)
        return result

    @contextmanager
    def limit(self, *names: str) -> Iterator[None]:
        """Holds one of each limit named inside of `with`, waiting for its turn."""
        self.check()
        claim, taken = self._channel.claim, _limit_names(names)
        self._check_open("limit")
        self._channel.ask_blocking("acquire", names=taken, inside=held_around(claim, taken))
        try:
            self.check()
            with inside(claim, taken):
                yield
        finally:
            self._channel.ask_blocking("release", names=taken)

    def guard(self, conn: object) -> None:
        """Makes sure that this attempt is still the running one when your transaction commits."""
        self.check()
        self._met(self._own_transaction.guard_blocking(conn))

    def finish(self, *, conn: object, result: Any = None) -> None:
        """Completes the job in your transaction: with what you wrote there, or not at all."""
        self.check()
        answer = self._own_transaction.finish_blocking(conn, result)
        if answer != "finished":
            self._met(answer)

    def _met(self, answer: str) -> None:
        if answer != "held":
            self._channel.ask_blocking("met", answer=answer)
            self.check()
            raise Interrupted("cancel")

    def track(
        self,
        items: Iterable[T],
        *,
        total: int | None = None,
        name: str = "items",
        durable: bool = False,
    ) -> Iterator[T]:
        """Goes through items with progress, checkpoint and a place to stop at each of them."""
        count, reached = _length(items, total), self._remembered.tracked.get(name, 0)
        for place, item in enumerate(items, 1):
            if place <= reached:
                continue
            self.check()
            yield item
            self._reached(name, place, count)
            if durable:
                self._channel.ask_blocking("flush")
        self.check()
