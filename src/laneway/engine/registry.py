"""The handlers of an application by job type, and its hooks, checks and schedules."""

from __future__ import annotations

import inspect
import json
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

from laneway.domain.approval import Analysis, analysis_of, as_approval, is_analysis
from laneway.domain.arguments import Arguments, check_schema
from laneway.domain.change_rules import check_whole
from laneway.domain.job_type_policy import (
    Isolation,
    JobTypePolicy,
    Stale,
    TypeRecord,
)
from laneway.domain.lane import check_job_type
from laneway.domain.retention import Retention
from laneway.domain.retry import RetryPolicy
from laneway.domain.schedule import Schedule
from laneway.engine.leader.schedule_checks import ScheduleCheck
from laneway.errors import ConfigError, InvalidInput

log = logging.getLogger("laneway")


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler(JobTypePolicy):
    """The user's function for a job type, with its options."""

    job_type: str
    fn: Callable[..., Any]
    arguments: Arguments
    memory_mb: int | None = None

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.fn)

    @property
    def is_analysis(self) -> bool:
        return is_analysis(self.job_type)

    def record(self, *, has_analysis: bool = False) -> TypeRecord:
        """The description of the job type that workers publish.

        It omits a schema that other processes cannot use; then only the worker checks payloads.
        """
        arguments = json.dumps(self.arguments.schema())
        try:
            check_schema(arguments, "arguments")
        except InvalidInput as error:
            log.warning(
                "handler %r: the JSON Schema of its arguments is not published, because it %s:"
                " payloads are checked when the job runs, not at submit",
                self.job_type, error.rule,
            )  # fmt: skip
            arguments = "null"
        return TypeRecord(
            name=self.job_type,
            arguments=arguments,
            has_analysis=has_analysis,
            application=_module(self.fn),
            **self.policy,
        )


def _module(fn: Callable[..., Any]) -> str:
    """The module of a function, by its real name even if it runs as the main program."""
    if fn.__module__ != "__main__":
        return fn.__module__
    main = sys.modules["__main__"]
    spec, path = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    if spec is not None and spec.name != "__main__":
        return str(spec.name)
    if path is None:
        return "__main__"
    # A folder or archive run as a program gives its own name.
    return Path(path).parent.stem if spec is not None else Path(path).stem


def make_handler(job_type: str, fn: Callable[..., Any], **options: Any) -> Handler:
    """Make a handler; raises ConfigError that names the job type and the wrong option."""
    try:
        return _checked(job_type, fn, **options)
    except InvalidInput as error:
        option = error.field.removesuffix("_s")
        raise ConfigError(f"handler {job_type!r}: {option}: {error.rule}") from error
    except TypeError as error:
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
    limits: Sequence[str] = (),
    approval: object = None,
    max_age: float | timedelta | None = None,
    retention: Retention | None = None,
) -> Handler:
    check_job_type(job_type)
    is_async = inspect.iscoroutinefunction(fn)
    chosen = isolation or ("async" if is_async else "thread")
    if chosen == "async" and not is_async:
        raise InvalidInput("isolation", "async needs an async def")
    if chosen == "thread" and is_async:
        raise InvalidInput("isolation", "thread needs a plain def")
    if memory_mb is not None:
        if chosen != "process":
            raise InvalidInput("memory_mb", "needs isolation='process'")
        check_whole(memory_mb, "memory_mb", 64, 1_048_576)
    return Handler(
        job_type=job_type,
        fn=fn,
        isolation=cast(Isolation, chosen),
        arguments=Arguments.of(fn),
        lane=lane,
        priority=priority,
        max_retries=max_retries,
        timeout_s=timeout,
        retry=retry or RetryPolicy(),
        stale=cast(Stale, stale),
        memory_mb=memory_mb,
        limits=cast("tuple[str, ...]", limits),
        approval=as_approval(approval),
        max_age_s=cast("float | None", max_age),
        retention=retention or Retention(),
    )


def make_analysis(handler: Handler, fn: Callable[..., Any]) -> Handler:
    """Make the analysis of a handler; it gets the arguments that it names, and `ctx` if named."""
    if handler.is_analysis:
        raise ConfigError(f"handler {handler.job_type!r}: an analysis has no analysis")
    parameters = inspect.signature(fn).parameters
    takes_all = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())
    known = handler.arguments.names
    for name, one in parameters.items():
        is_named = one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
        if is_named and one.default is one.empty and name not in known and name != "ctx":
            raise ConfigError(
                f"analysis of {handler.job_type!r}: its handler has no argument {name}"
            )

    def chosen(ctx: Any, arguments: dict[str, Any]) -> dict[str, Any]:
        full = handler.arguments.with_defaults(arguments)
        given = {k: v for k, v in full.items() if takes_all or k in parameters}
        return {**given, "ctx": ctx} if "ctx" in parameters else given

    async def analyze(ctx: Any, **arguments: Any) -> dict[str, Any]:
        return _result(await fn(**chosen(ctx, arguments)))

    def analyze_in_thread(ctx: Any, **arguments: Any) -> dict[str, Any]:
        return _result(fn(**chosen(ctx, arguments)))

    is_async = inspect.iscoroutinefunction(fn)
    return Handler(
        job_type=analysis_of(handler.job_type),
        fn=analyze if is_async else analyze_in_thread,
        isolation="async" if is_async else "thread",
        arguments=handler.arguments,
        max_retries=2,
        timeout_s=handler.timeout_s,
        retry=handler.retry,
    )


def _result(value: object) -> dict[str, Any]:
    if not isinstance(value, Analysis):
        raise InvalidInput("analysis", f"must be an Analysis, got {type(value).__name__}")
    return value.to_dict()


class Registry:
    """The handlers, analyses, hooks, checks and schedules of an application."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}
        self._analyses: dict[str, Handler] = {}
        self.on_start: list[Callable[..., Any]] = []
        self.on_stop: list[Callable[..., Any]] = []
        self.checks: dict[str, ScheduleCheck] = {}
        self.schedules: dict[str, Schedule] = {}

    def add(self, handler: Handler) -> None:
        if handler.job_type in self._handlers:
            raise ConfigError(f"handler {handler.job_type!r}: is already registered")
        self._handlers[handler.job_type] = handler

    def add_analysis(self, handler: Handler, fn: Callable[..., Any]) -> None:
        analysis = make_analysis(handler, fn)
        if analysis.job_type in self._analyses:
            raise ConfigError(f"handler {handler.job_type!r}: already has an analysis")
        self._analyses[analysis.job_type] = analysis

    def add_check(self, check: ScheduleCheck) -> None:
        if check.name in self.checks:
            raise ConfigError(f"check {check.name!r}: is already registered")
        self.checks[check.name] = check

    def add_schedule(self, schedule: Schedule) -> None:
        if schedule.name in self.schedules:
            raise ConfigError(f"schedule {schedule.name!r}: is already registered")
        self.schedules[schedule.name] = schedule

    def get(self, job_type: str) -> Handler | None:
        return self._handlers.get(job_type)

    def __getitem__(self, job_type: str) -> Handler:
        """The handler of a job type or of its analysis."""
        return (self._analyses if is_analysis(job_type) else self._handlers)[job_type]

    def needs(self, job_type: str) -> str | None:
        """Whether jobs of a type need analysis, approval or both before they run; None if not."""
        handler = self._handlers.get(job_type)
        has_approval = handler is not None and handler.approval is not None
        if analysis_of(job_type) in self._analyses:
            return "both" if has_approval else "analysis"
        return "approval" if has_approval else None

    @property
    def runnable(self) -> list[Handler]:
        """The handlers that a worker may claim for, analyses included."""
        return [*self._handlers.values(), *self._analyses.values()]

    def records(self) -> list[TypeRecord]:
        """The descriptions of the job types to publish."""
        return [
            one.record(has_analysis=analysis_of(one.job_type) in self._analyses)
            for one in self._handlers.values()
        ]

    def __iter__(self) -> Iterator[Handler]:
        return iter(self._handlers.values())

    def __len__(self) -> int:
        return len(self._handlers)

    @property
    def job_types(self) -> list[str]:
        return sorted(self._handlers)
