"""The handlers of an application under test: recorded, and made to fail where a test asks."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any
from uuid import UUID

from laneway.engine.registry import Handler, Registry
from laneway.engine.run.middleware import around

Failure = BaseException | type[BaseException]
AttemptKey = tuple[UUID, int]


class InjectedFailures:
    """Exceptions that the next attempts raise instead of calling their handlers, by job type."""

    def __init__(self) -> None:
        self._next: defaultdict[str, deque[Failure]] = defaultdict(deque)

    def add(self, job_type: str, error: Failure, times: int) -> None:
        self._next[job_type].extend([error] * times)

    def take(self, job_type: str) -> Failure | None:
        waiting = self._next[job_type]
        return waiting.popleft() if waiting else None


class RecordedHandlers(Registry):
    """The registry of an application, whose handlers run in this process and are recorded."""

    def __init__(self, registry: Registry, injected: InjectedFailures) -> None:
        super().__init__()
        vars(self).update(vars(registry))
        self._original = registry
        # Each recorded handler contains it.
        self.middleware = []
        self._injected = injected
        self.raised: dict[AttemptKey, BaseException] = {}
        self.was_injected: set[AttemptKey] = set()

    def __getitem__(self, job_type: str) -> Handler:
        return self._recorded(super().__getitem__(job_type))

    @property
    def runnable(self) -> list[Handler]:
        return [self._recorded(handler) for handler in super().runnable]

    def _recorded(self, handler: Handler) -> Handler:
        """A handler for a child process runs in a thread or on the loop: mocks reach it there."""
        if handler.is_async:
            fn = self._recorded_async(handler)
            return replace(handler, fn=fn, isolation="async", memory_mb=None)
        fn = self._recorded_plain(handler)
        return replace(handler, fn=fn, isolation="thread", memory_mb=None)

    def _recorded_async(self, handler: Handler) -> Callable[..., Any]:
        @wraps(handler.fn)
        async def run(ctx: Any, **kwargs: Any) -> Any:
            self._inject(handler.job_type, ctx)
            return await handler.fn(ctx, **kwargs)

        inside = around(self._original, replace(handler, fn=run))

        @wraps(handler.fn)
        async def record(ctx: Any, **kwargs: Any) -> Any:
            try:
                return await inside(ctx, **kwargs)
            except BaseException as error:
                self.raised[ctx.job_id, ctx.attempt] = error
                raise

        return record

    def _recorded_plain(self, handler: Handler) -> Callable[..., Any]:
        @wraps(handler.fn)
        def run(ctx: Any, **kwargs: Any) -> Any:
            self._inject(handler.job_type, ctx)
            return handler.fn(ctx, **kwargs)

        inside = around(self._original, replace(handler, fn=run))

        @wraps(handler.fn)
        def record(ctx: Any, **kwargs: Any) -> Any:
            try:
                return inside(ctx, **kwargs)
            except BaseException as error:
                self.raised[ctx.job_id, ctx.attempt] = error
                raise

        return record

    def _inject(self, job_type: str, ctx: Any) -> None:
        error = self._injected.take(job_type)
        if error is not None:
            self.was_injected.add((ctx.job_id, ctx.attempt))
            raise error
