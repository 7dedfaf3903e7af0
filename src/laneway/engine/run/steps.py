"""Durable steps: named parts of a handler that run once per job and whose results are stored."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from laneway.domain.not_a_job import close_coroutine
from laneway.domain.payload import PayloadLimits
from laneway.domain.result_type import ResultType
from laneway.domain.text import check_text
from laneway.domain.wait import NAME_BYTES
from laneway.engine.async_callable import is_async
from laneway.engine.run.handler_channel import HandlerChannel
from laneway.errors import InvalidInput

T = TypeVar("T")


class _StepResult:
    """Encodes and decodes the result of one step."""

    __slots__ = ("_field", "_limits", "_type")

    def __init__(
        self, field: str, fn: Callable[..., Any], hint: Any, limits: PayloadLimits
    ) -> None:
        self._field = field
        self._type = ResultType.of(fn, hint, field)
        self._limits = replace(limits, max_bytes=limits.step_bytes)

    def encode(self, value: object) -> str:
        return self._type.encode(value, self._limits, self._field)

    def decode(self, text: str) -> Any:
        return self._type.decode(text, self._limits, self._field)


class Steps:
    """The steps of one attempt: stored results, and the names used so far."""

    __slots__ = ("_channel", "_found", "_reading", "_used")

    def __init__(self, channel: HandlerChannel, used: set[str]) -> None:
        """`used`: the names of steps and waits of this attempt, which share one namespace."""
        self._channel = channel
        # A first attempt has no stored steps to read.
        self._found: dict[str, str] | None = {} if channel.claim.attempt == 1 else None
        self._used = used
        self._reading = asyncio.Lock()

    async def run(
        self,
        name: str,
        fn: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        hint: Any,
    ) -> Any:
        """Return the step's result; call fn only if no attempt has finished the step."""
        returns = self._begin(name, fn, hint)
        try:
            async with self._reading:
                if self._found is None:
                    self._found = await self._channel.ask("steps")
            if name in self._found:
                return returns.decode(self._found[name])
            began = time.monotonic()
            value = fn(*args, **kwargs)
            if inspect.isawaitable(value):
                value = await value
            text, took_s = returns.encode(value), time.monotonic() - began
            kept = await run_to_completion(
                self._channel.ask("keep", name=name, result=text, took_s=took_s)
            )
        except BaseException:
            self._used.discard(name)
            raise
        return returns.decode(kept)

    def run_blocking(
        self,
        name: str,
        fn: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        hint: Any,
    ) -> Any:
        """`run` without an event loop."""
        returns = self._begin(name, fn, hint)
        try:
            if self._found is None:
                self._found = self._channel.ask_blocking("steps")
            if name in self._found:
                return returns.decode(self._found[name])
            if is_async(fn):
                raise InvalidInput(_named(name), "is async, but its handler is a plain function")
            began = time.monotonic()
            text, took_s = returns.encode(fn(*args, **kwargs)), time.monotonic() - began
            kept = self._channel.ask_blocking("keep", name=name, result=text, took_s=took_s)
        except BaseException:
            self._used.discard(name)
            raise
        return returns.decode(kept)

    def _begin(self, name: str, fn: object, hint: Any) -> _StepResult:
        check_text(name, "step", max_bytes=NAME_BYTES)
        if name in self._used:
            raise InvalidInput(
                _named(name),
                "ran already in this attempt: names of steps and waits are unique in a job",
            )
        if not callable(fn):
            close_coroutine(fn)
            raise InvalidInput(
                _named(name),
                f"takes a function, not {type(fn).__name__}:"
                f" write ctx.step({name!r}, fn, *args) without calling fn",
            )
        returns = _StepResult(_named(name), fn, hint, self._channel.limits)
        self._used.add(name)
        return returns


def _named(name: str) -> str:
    return f"step {name!r}"


async def run_to_completion(work: Awaitable[T]) -> T:
    """Await work to its end even if cancelled; the cancellation is raised afterwards."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            await asyncio.wait({task})
        raise
