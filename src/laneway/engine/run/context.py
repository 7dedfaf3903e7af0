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
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

from laneway.domain.held_limits import count_held, mark_held
from laneway.domain.redaction import redact
from laneway.domain.result_type import UNSET
from laneway.domain.text import escape_text
from laneway.engine.run.call_retry import CallRetryOptions, call, call_blocking
from laneway.engine.run.checkpoint import Checkpoint
from laneway.engine.run.handler_channel import HandlerChannel, Interrupted, Log, finished_error
from laneway.engine.run.job_facts import JobFacts
from laneway.engine.run.steps import Steps, run_to_completion
from laneway.engine.run.tracked_items import TrackedItems, each
from laneway.engine.run.wait_calls import AsyncWaitCalls, SyncWaitCalls
from laneway.engine.run.waits import Waits
from laneway.errors import InvalidInput

if TYPE_CHECKING:
    from laneway.engine.run.handler_transaction import HandlerTransaction

T = TypeVar("T")
LARGEST = 1e100
CANCEL_S = 1.0


class _Common(JobFacts):
    __slots__ = (
        "_log",
        "_names",
        "_opened_steps",
        "_opened_transaction",
        "_opened_waits",
        "_stored",
    )

    def __init__(self, channel: HandlerChannel) -> None:
        super().__init__(channel)
        self._stored: Checkpoint | None = None
        self._log: Log | None = None
        # Of steps and waits in this attempt.
        self._names: set[str] = set()
        self._opened_steps: Steps | None = None
        self._opened_waits: Waits | None = None
        self._opened_transaction: HandlerTransaction | None = None

    @property
    def checkpoint(self) -> Any:
        """The state that `save` stored last, in this attempt or an earlier one; None at first."""
        return self._saved.state

    @property
    def resources(self) -> SimpleNamespace:
        """The resources that `on_start` loaded in this process."""
        return self._channel.resources

    @property
    def cancelled(self) -> bool:
        """True once the handler should stop: cancelled, late, superseded or shutting down."""
        return self._channel.stop_reason is not None

    @property
    def log(self) -> Log:
        """Writes lines that are kept with the attempt: `ctx.log("page %s", 3)`."""
        if self._log is None:
            self._log = Log(self._channel)
        return self._log

    @property
    def has_finished(self) -> bool:
        """True after `finish`, whether its transaction committed or not."""
        return self._opened_transaction is not None and self._opened_transaction.has_finished

    @property
    def _steps(self) -> Steps:
        if self._opened_steps is None:
            self._opened_steps = Steps(self._channel, self._names)
        return self._opened_steps

    @property
    def _waits(self) -> Waits:
        if self._opened_waits is None:
            self._opened_waits = Waits(self._channel, self._names)
        return self._opened_waits

    def check_suspension(self) -> None:
        """Raise the suspension of this attempt again if its handler swallowed it."""
        if self._opened_waits is not None and self._opened_waits.suspension is not None:
            raise self._opened_waits.suspension

    @property
    def _transaction(self) -> HandlerTransaction:
        if self._opened_transaction is None:
            # Imported here: it loads the driver, which a child process may never need.
            from laneway.engine.run.handler_transaction import HandlerTransaction

            self._opened_transaction = HandlerTransaction(self._channel)
        return self._opened_transaction

    @property
    def _saved(self) -> Checkpoint:
        if self._stored is None:
            self._stored = Checkpoint(self._channel.checkpoint, self._channel.limits)
        return self._stored

    def _check_open(self, verb: str) -> None:
        self.check_suspension()
        if self.has_finished:
            raise finished_error(verb)

    def _report(
        self, done: float | None, total: float | None, message: str | None, stage: str | None
    ) -> None:
        self._channel.report(
            stage=escape_text(redact(stage))[:256] if stage is not None else None,
            done=_number("done", done),
            total=_number("total", total),
            message=escape_text(redact(message))[:1024] if message is not None else None,
        )

    def _report_position(self, name: str, position: int, total: int | None) -> None:
        self._saved.tracked[name] = position
        self._channel.report(
            done=float(position),
            total=None if total is None else float(total),
            checkpoint=self._saved.text(),
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
    # The percentage divides two of these, so extreme floats would overflow.
    return round(float(value), 9)


def _length(items: object, total: int | None) -> int | None:
    if total is None and isinstance(items, Sized):
        return len(items)
    return total


class Context(_Common, AsyncWaitCalls):
    """The `ctx` of an `async def` handler; a plain one gets a SyncContext with the same names."""

    __slots__ = ()

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
    async def step(
        self, name: str, fn: Callable[..., Any], /, *args: Any, returns: Any = UNSET, **kwargs: Any
    ) -> Any:
        """Run fn once per job and store its result; later attempts get it without a call.

        The result is stored as JSON and read back as the type of fn's return hint or `returns`. fn
        may be plain or async; a plain one runs on the event loop.
        """
        self._check_open("step")
        return await self._steps.run(name, fn, args, kwargs, returns)

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

    async def guard(self, conn: object) -> None:
        """Make sure that this attempt is still the running one when your transaction commits.

        Raises StaleAttempt, or ends the handler, if it is not; `conn` is your connection.
        """
        await self._check_answer(await self._transaction.guard(conn))

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
        return TrackedItems(self._track(items, total, name, durable))

    async def _track(
        self, items: Iterable[T] | AsyncIterable[T], total: int | None, name: str, durable: bool
    ) -> AsyncGenerator[T, None]:
        count, reached = _length(items, total), self._saved.tracked.get(name, 0)
        position = 0
        async for item in each(items):
            position += 1
            if position <= reached:
                continue
            yield item
            self._report_position(name, position, count)
            if durable:
                await self._channel.ask("flush")
            else:
                await asyncio.sleep(0)


class SyncContext(_Common, SyncWaitCalls):
    """The `ctx` of a plain `def` handler, in a thread or a child process."""

    __slots__ = ()

    def check(self) -> None:
        """End the handler here if it should stop; every other call checks too."""
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
        """Report progress; stored within half a second."""
        self.check()
        self._report(done, total, message, stage)

    def save(self, state: Any) -> None:
        """Store a checkpoint; when this returns, the next attempt will see it."""
        self.check()
        self._check_open("save")
        self._saved.state = state
        self._channel.report(checkpoint=self._saved.text())
        self._channel.ask_blocking("flush")

    def step(
        self, name: str, fn: Callable[..., T], /, *args: Any, returns: Any = UNSET, **kwargs: Any
    ) -> T:
        """Run fn once per job and store its result; later attempts get it without a call."""
        self.check()
        self._check_open("step")
        result: T = self._steps.run_blocking(name, fn, args, kwargs, returns)
        self.check()
        return result

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

    def guard(self, conn: object) -> None:
        """Make sure that this attempt is still the running one when your transaction commits."""
        self.check()
        self._check_answer(self._transaction.guard_blocking(conn))

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
