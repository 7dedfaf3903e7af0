"""Job type → handler."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from laneway.domain.arguments import Arguments
from laneway.domain.job import MAX_RETRIES_RANGE, PRIORITY_RANGE
from laneway.domain.lane import check_job_type, check_lane_name
from laneway.domain.retry import RetryPolicy
from laneway.errors import ConfigError, InvalidInput
from laneway.store.workers import TypeRecord

Isolation = Literal["async", "thread", "process"]
Stale = Literal["heartbeat", "progress"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """The user's function for a job type, with all that was said about it."""

    job_type: str
    fn: Callable[..., Any]
    isolation: Isolation
    arguments: Arguments
    lane: str | None = None
    priority: int | None = None
    max_retries: int = 3
    timeout: float | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    stale: Stale = "heartbeat"
    memory_mb: int | None = None

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.fn)

    def record(self) -> TypeRecord:
        """What other processes may know of it."""
        return TypeRecord(
            name=self.job_type,
            arguments=json.dumps(self.arguments.schema()),
            lane=self.lane,
            priority=self.priority,
            max_retries=self.max_retries,
            timeout_s=self.timeout,
            isolation=self.isolation,
            stale=self.stale,
            retry=self.retry,
        )


def make_handler(job_type: str, fn: Callable[..., Any], **options: Any) -> Handler:
    """A handler with its options checked; says which option of which job type is wrong."""
    try:
        return _checked(job_type, fn, **options)
    except (InvalidInput, TypeError) as error:
        raise ConfigError(f"handler {job_type!r}: {error}") from error


def _checked(
    job_type: str,
    fn: Callable[..., Any],
    *,
    lane: str | None = None,
    priority: int | None = None,
    max_retries: int = 3,
    timeout: float | None = None,
    isolation: str | None = None,
    retry: RetryPolicy | None = None,
    stale: str = "heartbeat",
    memory_mb: int | None = None,
) -> Handler:
    check_job_type(job_type)
    if lane is not None:
        check_lane_name(lane, "lane")
    if priority is not None:
        _whole("priority", priority, *PRIORITY_RANGE)
    _whole("max_retries", max_retries, *MAX_RETRIES_RANGE)
    if timeout is not None and not 0 < timeout <= 31_536_000:
        raise InvalidInput("timeout", "must be more than 0 seconds and at most a year")
    is_async = inspect.iscoroutinefunction(fn)
    chosen = isolation or ("async" if is_async else "thread")
    if chosen not in ("async", "thread", "process"):
        raise InvalidInput("isolation", "must be async, thread or process")
    if chosen == "async" and not is_async:
        raise InvalidInput("isolation", "async needs an async def")
    if chosen == "thread" and is_async:
        raise InvalidInput("isolation", "thread needs a plain def")
    if stale not in ("heartbeat", "progress"):
        raise InvalidInput("stale", "must be heartbeat or progress")
    if memory_mb is not None:
        if chosen != "process":
            raise InvalidInput("memory_mb", "needs isolation='process'")
        _whole("memory_mb", memory_mb, 64, 1_048_576)
    return Handler(
        job_type=job_type,
        fn=fn,
        isolation=cast(Isolation, chosen),
        arguments=Arguments.of(fn),
        lane=lane,
        priority=priority,
        max_retries=max_retries,
        timeout=timeout,
        retry=retry or RetryPolicy(),
        stale=cast(Stale, stale),
        memory_mb=memory_mb,
    )


def _whole(name: str, value: object, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise InvalidInput(name, f"must be a whole number from {low} to {high}")


class Registry:
    """The handlers of an application, and what it loads at start and frees at stop."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}
        self.on_start: list[Callable[..., Any]] = []
        self.on_stop: list[Callable[..., Any]] = []

    def add(self, handler: Handler) -> None:
        if handler.job_type in self._handlers:
            raise ConfigError(f"handler {handler.job_type!r}: there is one already")
        self._handlers[handler.job_type] = handler

    def get(self, job_type: str) -> Handler | None:
        return self._handlers.get(job_type)

    def __getitem__(self, job_type: str) -> Handler:
        return self._handlers[job_type]

    def __iter__(self) -> Iterator[Handler]:
        return iter(self._handlers.values())

    def __len__(self) -> int:
        return len(self._handlers)

    @property
    def job_types(self) -> list[str]:
        return sorted(self._handlers)
