"""What a handler holds: its job, and the ways to report, to remember, and to notice the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Sized
from types import SimpleNamespace
from typing import Any, Protocol, TypeVar
from uuid import UUID

from laneway.domain.payload import PayloadLimits, encode
from laneway.domain.text import escape_text
from laneway.errors import InvalidInput

T = TypeVar("T")
TRACKED = "_tracked"
LONGEST_LINE = 8192
LARGEST = 1e100


class Interrupted(BaseException):
    """Raised inside a plain handler at its next call of the context once it should stop.

    Not an Exception, so that `except Exception` in a handler does not swallow it.
    """


class Line(Protocol):
    """What a context needs from the worker it runs in, wherever that is."""

    job_id: UUID
    attempt: int
    payload: Any
    checkpoint: Any
    resources: SimpleNamespace
    limits: PayloadLimits

    @property
    def stop_reason(self) -> str | None: ...
    def report(
        self,
        *,
        stage: str | None = None,
        done: float | None = None,
        total: float | None = None,
        message: str | None = None,
        checkpoint: str | None = None,
    ) -> None: ...
    def log(self, level: str, message: str) -> None: ...
    async def flush(self) -> None: ...
    def flush_blocking(self) -> None: ...


class Log:
    """`ctx.log("text")`, or by level: `ctx.log.warning("text")`. Kept with the attempt."""

    __slots__ = ("_line",)

    def __init__(self, line: Line) -> None:
        self._line = line

    def __call__(self, message: object, level: str = "info") -> None:
        if level not in ("debug", "info", "warning", "error"):
            raise InvalidInput("level", "must be debug, info, warning or error")
        text = escape_text(str(message))
        if len(text) > LONGEST_LINE:
            text = text[:LONGEST_LINE] + " …"
        self._line.log(level, text)

    def debug(self, message: object) -> None:
        self(message, "debug")

    def info(self, message: object) -> None:
        self(message, "info")

    def warning(self, message: object) -> None:
        self(message, "warning")

    def error(self, message: object) -> None:
        self(message, "error")


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
    __slots__ = ("_line", "_log", "_memory")

    def __init__(self, line: Line) -> None:
        self._line = line
        self._memory: _Memory | None = None
        self._log: Log | None = None

    @property
    def job_id(self) -> UUID:
        return self._line.job_id

    @property
    def attempt(self) -> int:
        """The number of this claim: 1 for the first start."""
        return self._line.attempt

    @property
    def payload(self) -> Any:
        return self._line.payload

    @property
    def checkpoint(self) -> Any:
        """What `save` stored last, in this attempt or an earlier one; None at first."""
        return self._remembered.state

    @property
    def resources(self) -> SimpleNamespace:
        """What `on_start` loaded in this process."""
        return self._line.resources

    @property
    def cancelled(self) -> bool:
        """True once the handler should stop: cancelled, late, superseded or shutting down."""
        return self._line.stop_reason is not None

    @property
    def log(self) -> Log:
        if self._log is None:
            self._log = Log(self._line)
        return self._log

    @property
    def _remembered(self) -> _Memory:
        if self._memory is None:
            self._memory = _Memory(self._line.checkpoint, self._line.limits)
        return self._memory

    def _report(
        self, done: float | None, total: float | None, message: str | None, stage: str | None
    ) -> None:
        self._line.report(
            stage=escape_text(stage)[:256] if stage is not None else None,
            done=_number("done", done),
            total=_number("total", total),
            message=escape_text(message)[:1024] if message is not None else None,
        )

    def _reached(self, name: str, place: int, total: int | None) -> None:
        self._remembered.tracked[name] = place
        self._line.report(
            done=float(place),
            total=None if total is None else float(total),
            checkpoint=self._remembered.text(),
        )


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
        self._remembered.state = state
        self._line.report(checkpoint=self._remembered.text())
        await self._line.flush()

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
                await self._line.flush()
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
        if self._line.stop_reason is not None:
            raise Interrupted(self._line.stop_reason)

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
        self._remembered.state = state
        self._line.report(checkpoint=self._remembered.text())
        self._line.flush_blocking()

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
                self._line.flush_blocking()
        self.check()
