"""The handlers of an application by job type, and what else it declares."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, Unpack, cast

from laneway.domain.approval import Analysis, Approval, analysis_of, as_approval, is_analysis
from laneway.domain.change_rules import check_whole
from laneway.domain.declared import Limit
from laneway.domain.end_hook import EndHook
from laneway.domain.job_type_policy import (
    Isolation,
    JobTypePolicy,
    Stale,
    TypeRecord,
)
from laneway.domain.lane import Lane, check_job_type
from laneway.domain.lane_setup import check_setup, read_table
from laneway.domain.result_type import ResultType
from laneway.domain.retention import Retention
from laneway.domain.retry import RetryFunction, RetryPolicy
from laneway.domain.schedule import Schedule
from laneway.domain.suggestion import suggest
from laneway.domain.uniqueness import check_unique_by
from laneway.domain.webhook import WEBHOOK_TYPE
from laneway.engine.async_callable import WRAPPED, check_awaited, hides_async, is_async
from laneway.engine.code_place import (
    check_names,
    name_of,
    place_of,
    place_of_caller,
)
from laneway.engine.handler_signature import check_handler, check_retry_function
from laneway.engine.leader.schedule_checks import ScheduleCheck
from laneway.errors import ConfigError, InvalidInput, InvalidResult
from laneway.observability.safe_logger import SafeLogger

if TYPE_CHECKING:
    from laneway.domain.arguments import Arguments

log = SafeLogger("laneway")


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler(JobTypePolicy):
    """The user's function for a job type, with its options."""

    job_type: str
    fn: Callable[..., Any]
    arguments: Arguments
    results: ResultType = field(default_factory=ResultType)
    memory_mb: int | None = None
    # Decides about a retry after each failure with an exception; the policy after all others.
    retry_fn: RetryFunction | None = None
    # Laneway's own: without the application's middleware.
    is_internal: bool = False

    @property
    def is_async(self) -> bool:
        return is_async(self.fn)

    @property
    def is_analysis(self) -> bool:
        return is_analysis(self.job_type)

    def record(self, *, has_analysis: bool = False) -> TypeRecord:
        """The description of the job type that workers publish.

        It omits a schema that other processes cannot use; then only the worker checks payloads.
        """
        from laneway.domain.arguments import check_schema

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


class HandlerOptions(TypedDict, total=False):
    """The options of `@lw.handler`; None stands for the default. Times are seconds."""

    lane: str | None
    priority: int | None
    max_retries: int
    timeout: float | timedelta | None
    isolation: Isolation | None
    retry: RetryPolicy | RetryFunction | None
    stale: Stale
    memory_mb: int | None
    limits: Sequence[str]
    approval: Approval | bool | Literal["always", "never"] | None
    max_age: float | timedelta | None
    retention: Retention | None
    unique_for: float | timedelta | None
    unique_by: Sequence[str] | None


def make_handler(
    job_type: str, fn: Callable[..., Any], **options: Unpack[HandlerOptions]
) -> Handler:
    """Make a handler; ConfigError names the line, the job type, the wrong option and the cure."""
    try:
        check_names(options, HandlerOptions.__annotations__, "@lw.handler")
        check_handler(fn)
        return _checked(job_type, fn, **options)
    except InvalidInput as error:
        option = error.field.removesuffix("_s")
        reason = f"{option}: {error.rule}"
        raise ConfigError(f"{place_of(fn)}: handler {job_type!r}: {reason}") from error
    except TypeError as error:
        raise ConfigError(f"{place_of(fn)}: handler {job_type!r}: {error}") from error


def _checked(
    job_type: str,
    fn: Callable[..., Any],
    *,
    lane: str | None = None,
    priority: int | None = None,
    max_retries: int = 3,
    timeout: float | timedelta | None = None,
    isolation: Isolation | None = None,
    retry: RetryPolicy | RetryFunction | None = None,
    stale: Stale = "heartbeat",
    memory_mb: int | None = None,
    limits: Sequence[str] = (),
    approval: Approval | bool | Literal["always", "never"] | None = None,
    max_age: float | timedelta | None = None,
    retention: Retention | None = None,
    unique_for: float | timedelta | None = None,
    unique_by: Sequence[str] | None = None,
) -> Handler:
    check_job_type(job_type)
    if isolation in (None, "async") and hides_async(fn):
        cure = ", or say isolation='thread' if it runs that to its end itself"
        raise InvalidInput(name_of(fn), WRAPPED + cure)
    chosen: Isolation = isolation or ("async" if is_async(fn) else "thread")
    if chosen == "async" and not is_async(fn):
        raise InvalidInput("isolation", "async needs an async def")
    if chosen == "thread" and is_async(fn):
        raise InvalidInput("isolation", "thread needs a plain def")
    if memory_mb is not None:
        if chosen != "process":
            raise InvalidInput("memory_mb", "needs isolation='process'")
        check_whole(memory_mb, "memory_mb", 64, 1_048_576)
    from laneway.domain.arguments import Arguments

    arguments = Arguments.of(fn)
    if unique_by is not None:
        known = None if arguments.accepts_any_name else arguments.names
        unique_by = check_unique_by(unique_by, known=known)
    return Handler(
        job_type=job_type,
        fn=fn,
        isolation=chosen,
        arguments=arguments,
        results=ResultType.of(fn),
        lane=lane,
        priority=priority,
        max_retries=max_retries,
        timeout_s=cast("float | None", timeout),
        retry=retry if isinstance(retry, RetryPolicy) else RetryPolicy(),
        retry_fn=None if isinstance(retry, RetryPolicy) else check_retry_function(retry),
        stale=stale,
        memory_mb=memory_mb,
        limits=cast("tuple[str, ...]", limits),
        approval=as_approval(approval),
        max_age_s=cast("float | None", max_age),
        retention=retention or Retention(),
        unique_for_s=cast("float | None", unique_for),
        unique_by=unique_by,
    )


def make_analysis(handler: Handler, fn: Callable[..., Any]) -> Handler:
    """Make the analysis of a handler; it gets the arguments that it names, and `ctx` if named."""
    if handler.is_analysis:
        raise ConfigError(f"handler {handler.job_type!r}: an analysis has no analysis")
    if not callable(fn):
        raise ConfigError(
            f"{place_of(fn)}: analysis of {handler.job_type!r}: must be a function that returns an"
            " Analysis"
        )
    if hides_async(fn):
        raise ConfigError(
            f"{place_of(fn)}: analysis of {handler.job_type!r}: {name_of(fn)} {WRAPPED}"
        )
    parameters = inspect.signature(fn).parameters
    takes_all = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())
    known = handler.arguments.names
    for name, one in parameters.items():
        is_named = one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
        if is_named and one.default is one.empty and name not in known and name != "ctx":
            near = suggest(name, known) or f"; it may take {', '.join(('ctx', *sorted(known)))}"
            raise ConfigError(
                f"{place_of(fn)}: analysis of {handler.job_type!r}: its handler has no argument"
                f" {name}{near}"
            )

    def chosen(ctx: Any, arguments: dict[str, Any]) -> dict[str, Any]:
        full = handler.arguments.with_defaults(arguments)
        given = {k: v for k, v in full.items() if takes_all or k in parameters}
        return {**given, "ctx": ctx} if "ctx" in parameters else given

    async def analyze(ctx: Any, **arguments: Any) -> dict[str, Any]:
        return _result(await fn(**chosen(ctx, arguments)), handler.job_type)

    def analyze_in_thread(ctx: Any, **arguments: Any) -> dict[str, Any]:
        return _result(fn(**chosen(ctx, arguments)), handler.job_type)

    return Handler(
        job_type=analysis_of(handler.job_type),
        fn=analyze if is_async(fn) else analyze_in_thread,
        isolation="async" if is_async(fn) else "thread",
        arguments=handler.arguments,
        max_retries=2,
        timeout_s=handler.timeout_s,
        retry=handler.retry,
    )


def _result(value: object, job_type: str) -> dict[str, Any]:
    check_awaited(value, job_type)
    if not isinstance(value, Analysis):
        raise InvalidResult("analysis", f"must be an Analysis, got {type(value).__name__}")
    return value.to_dict()


class ScheduleSource(NamedTuple):
    """The place where code declares a schedule, and the settings that it gives."""

    place: str
    given: frozenset[str]


class Registry:
    """The handlers of an application, and what else it declares: schedules, lanes, hooks …"""

    def __init__(self) -> None:
        # For messages about an application without handlers.
        self.why_empty = (
            "the application has no handlers: decorate functions with @lw.handler, and import the"
            " modules that do so before the worker starts"
        )
        self._handlers: dict[str, Handler] = {}
        self._analyses: dict[str, Handler] = {}
        self.on_start: list[Callable[..., Any]] = []
        self.on_stop: list[Callable[..., Any]] = []
        # The first is the outermost.
        self.middleware: list[Callable[..., Any]] = []
        self.checks: dict[str, ScheduleCheck] = {}
        self.schedules: dict[str, Schedule] = {}
        self.schedule_sources: dict[str, ScheduleSource] = {}
        # By the job type of their handlers.
        self.end_hooks: dict[str, EndHook] = {}
        self.lanes: tuple[Lane, ...] = ()
        self.limits: dict[str, Limit] = {}

    def add(self, handler: Handler) -> None:
        if handler.job_type == WEBHOOK_TYPE:
            raise ConfigError(
                f"{place_of(handler.fn)}: handler {handler.job_type!r}: is Laneway's own, for"
                " webhooks: choose another name"
            )
        if (first := self._handlers.get(handler.job_type)) is not None:
            raise ConfigError(
                f"{place_of(handler.fn)}: handler {handler.job_type!r}: is already registered, at"
                f" {place_of(first.fn)}"
            )
        self._handlers[handler.job_type] = handler

    def add_analysis(self, handler: Handler, fn: Callable[..., Any]) -> None:
        analysis = make_analysis(handler, fn)
        if analysis.job_type in self._analyses:
            raise ConfigError(
                f"{place_of(fn)}: handler {handler.job_type!r}: already has an analysis"
            )
        self._analyses[analysis.job_type] = analysis

    def add_hook(self, when: Literal["on_start", "on_stop"], fn: Callable[..., Any]) -> None:
        """Register a function that loads or frees the resources of a process."""
        try:
            inspect.signature(fn).bind(None)
        except TypeError as error:
            written = f"def {name_of(fn)}(resources)"
            raise ConfigError(
                f"{place_of(fn)}: @lw.{when}: the function takes the resources and nothing else"
                f" ({error}): write {written}"
            ) from None
        except ValueError:
            pass  # a builtin has no signature
        (self.on_start if when == "on_start" else self.on_stop).append(fn)

    def add_check(self, check: ScheduleCheck) -> None:
        if check.name in self.checks:
            raise ConfigError(f"{place_of(check.fn)}: check {check.name!r}: is already registered")
        self.checks[check.name] = check

    def add_schedule(self, schedule: Schedule, source: ScheduleSource) -> None:
        if schedule.name in self.schedules:
            raise ConfigError(
                f"{place_of_caller()}: schedule {schedule.name!r}: is already registered"
            )
        self.schedules[schedule.name] = schedule
        self.schedule_sources[schedule.name] = source

    def add_lanes(self, lanes: object) -> None:
        try:
            for one in lanes if isinstance(lanes, (list, tuple)) else ():
                if not isinstance(one, (Lane, Mapping)):
                    kind = type(one).__name__
                    raise InvalidInput("lanes", f"must be a list of Lane, found {kind}")
            self.lanes = check_setup(read_table(lanes))
        except InvalidInput as error:
            text = error.rule if error.field == "lanes" else str(error)
            raise ConfigError(f"{place_of_caller()}: Laneway(): lanes: {text}") from None

    def add_limits(self, limits: Iterable[object]) -> None:
        for limit in limits:
            if not isinstance(limit, Limit):
                kind = type(limit).__name__
                rule = f"must be a list of Limit, found {kind}"
                raise ConfigError(f"{place_of_caller()}: Laneway(): limits: {rule}")
            if limit.name in self.limits:
                rule = f"names the limit {limit.name} twice"
                raise ConfigError(f"{place_of_caller()}: Laneway(): limits: {rule}")
            self.limits[limit.name] = limit

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
