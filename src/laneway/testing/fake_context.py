"""Contexts for calling a handler as a function: they record, and write nothing anywhere.

ctx = FakeContext(attempt=2)
assert await count_words(ctx, text="one two") == 2
assert ctx.reports[-1].done == 2
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from types import SimpleNamespace
from typing import Any, ClassVar, TypedDict, TypeVar, Unpack
from uuid import UUID, uuid4

from laneway.domain.claim import Claim
from laneway.domain.lane import DEFAULT_LANE
from laneway.domain.payload import PayloadLimits, encode
from laneway.domain.result_type import ResultType
from laneway.domain.retry import DEFAULT_MAX_RETRIES
from laneway.domain.wait import JobResult
from laneway.engine.run.call_check import checked_call
from laneway.engine.run.call_retry import CallRetryOptions
from laneway.engine.run.checkpoint import TRACKED
from laneway.engine.run.context import FINISH, GUARD, RETRY, Context, SyncContext
from laneway.engine.run.handler_state import HandlerState
from laneway.engine.run.wait_calls import RUN_ALL, SLEEP, WAIT_EVENT
from laneway.errors import InvalidInput, Refused
from laneway.store.leases import Assignment
from laneway.testing.fake_waits import FakeSubJob, FakeWaits, SubResults

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ProgressReport:
    """One call of `ctx.progress`, or one item of `ctx.track`."""

    done: float | None = None
    total: float | None = None
    message: str | None = None
    stage: str | None = None


@dataclass(frozen=True, slots=True)
class FakeLogLine:
    """One call of `ctx.log`."""

    level: str
    message: str


class FakeJob(TypedDict, total=False):
    """The job that a fake context shows to its handler."""

    attempt: int
    payload: Any
    checkpoint: Any
    tracked: int | Mapping[str, int]
    steps: Mapping[str, object]
    resources: Mapping[str, object]
    cancelled: bool
    job_id: UUID
    job_type: str
    lane: str
    max_retries: int
    tags: tuple[str, ...]
    created_by: str
    results: Iterable[object]
    sub_results: Mapping[str, SubResults]
    events: Mapping[str, object]


class FakeChannel:
    """Stands in for the worker: answers from memory and keeps what it is given."""

    def __init__(
        self,
        *,
        attempt: int | None = None,
        payload: Any = None,
        checkpoint: Any = None,
        tracked: int | Mapping[str, int] = 0,
        steps: Mapping[str, object] | None = None,
        resources: Mapping[str, object] | None = None,
        cancelled: bool = False,
        job_id: UUID | None = None,
        job_type: str = "fake",
        lane: str = DEFAULT_LANE,
        max_retries: int = DEFAULT_MAX_RETRIES,
        tags: tuple[str, ...] = (),
        created_by: str | None = None,
        results: Iterable[object] = (),
        sub_results: Mapping[str, SubResults] | None = None,
        events: Mapping[str, object] | None = None,
    ) -> None:
        self.has_database = True
        self.limits = PayloadLimits()
        self.results = ResultType()
        if tracked:
            checkpoint = _with_positions(checkpoint, tracked)
        number = attempt or (1 if checkpoint is None and not steps else 2)
        self.claim = Claim(0, job_id or uuid4(), number)
        self.assignment = Assignment(
            self.claim,
            rank=0,
            job_type=job_type,
            payload=encode(payload),
            checkpoint=None,
            retries=number - 1,
            fresh=number == 1,
            max_retries=max_retries,
            tags=tags,
            created_by=created_by,
        )
        self.lane = lane
        self.payload = payload
        self.checkpoint = checkpoint
        self.resources = SimpleNamespace(**(resources or {}))
        self.stop_reason: str | None = "cancel" if cancelled else None
        self.ran_s = 0.0
        self.reports: list[ProgressReport] = []
        self.log_lines: list[FakeLogLine] = []
        self.steps = {name: encode(value, field=name) for name, value in (steps or {}).items()}
        self.limits_held: list[tuple[str, ...]] = []
        self.waits: list[float] = []
        self.durable = FakeWaits(results, sub_results, events)
        # The results given to `ctx.finish`: none, or one.
        self.finished: list[object] = []

    def report(
        self,
        *,
        stage: str | None = None,
        done: float | None = None,
        total: float | None = None,
        message: str | None = None,
        checkpoint: str | None = None,
    ) -> None:
        self._check()
        if any(value is not None for value in (stage, done, total, message)):
            self.reports.append(ProgressReport(done, total, message, stage))

    def log(self, level: str, message: str) -> None:
        self.log_lines.append(FakeLogLine(level, message))

    async def ask(self, what: str, **body: Any) -> Any:
        self._check()
        return self._answer(what, body)

    def ask_blocking(self, what: str, **body: Any) -> Any:
        return self._answer(what, body)

    def _answer(self, what: str, body: Mapping[str, Any]) -> Any:
        match what:
            case "steps":
                return dict(self.steps)
            case "keep":
                return self.steps.setdefault(body["name"], body["result"])
            case "acquire":
                self.limits_held.append(tuple(body["names"]))
        return None

    def _check(self) -> None:
        """A worker cancels an async handler, which notices it at its next await."""
        if self.stop_reason is not None:
            raise asyncio.CancelledError("cancel requested")


def _with_positions(checkpoint: Any, tracked: int | Mapping[str, int]) -> dict[str, Any]:
    """The checkpoint as a worker stores it, with the items done of each `ctx.track`."""
    by_name: Mapping[str, object] = tracked if isinstance(tracked, Mapping) else {"items": tracked}
    for done in by_name.values():
        if not isinstance(done, int) or isinstance(done, bool) or done < 0:
            raise InvalidInput("tracked", f"must be the number of items done, not {done!r}")
    if checkpoint is not None and not isinstance(checkpoint, Mapping):
        raise InvalidInput("checkpoint", "must be an object (a dict) together with tracked")
    return {**(checkpoint or {}), TRACKED: dict(by_name)}


class _Recorded(HandlerState):
    """The records that both kinds of fake contexts keep."""

    def __init__(self, **given: Unpack[FakeJob]) -> None:
        """`steps`, `checkpoint` and `tracked` are of an earlier attempt; then `attempt` is 2.

        `tracked` is the number of items that `ctx.track` has done; by name if there are several.
        `results`: of `ctx.results`, each a value or a JobResult. `sub_results`: of each
        `ctx.run_all` by its name. `events`: the payload of each event by its name; TimeoutError
        for one that does not come. A sleep takes no time.
        """
        self._fake = FakeChannel(**given)
        super().__init__(self._fake)

    @property
    def tracked(self) -> dict[str, int]:
        """The items done of each `ctx.track`, by its `name`, which is "items" by default."""
        return dict(self._saved.tracked)

    @property
    def reports(self) -> list[ProgressReport]:
        """The progress that the handler reported."""
        return self._fake.reports

    @property
    def log_lines(self) -> list[FakeLogLine]:
        """The lines that the handler logged."""
        return self._fake.log_lines

    @property
    def steps(self) -> dict[str, object]:
        """The results of the steps that are done, by name, as JSON values."""
        return {name: json.loads(text) for name, text in self._fake.steps.items()}

    @property
    def limits_held(self) -> list[tuple[str, ...]]:
        """The limits that the handler took, one entry for each `ctx.limit`."""
        return self._fake.limits_held

    @property
    def waits(self) -> list[float]:
        """The seconds that `ctx.retry` would have waited."""
        return self._fake.waits

    @property
    def sub_jobs(self) -> dict[str, list[FakeSubJob]]:
        """The jobs that the handler gave to each `ctx.run_all`, by its name."""
        return self._fake.durable.sub_jobs

    @property
    def sleeps(self) -> dict[str, float]:
        """The seconds of each `ctx.sleep`, by its name."""
        return self._fake.durable.sleeps

    @property
    def has_finished(self) -> bool:
        """True after `finish`."""
        return bool(self._fake.finished)

    @property
    def finished_result(self) -> object:
        """The result that the handler gave to `ctx.finish`."""
        return self._fake.finished[0] if self._fake.finished else None

    def cancel(self) -> None:
        """Cancel the job: the next call of the context ends the handler."""
        self._fake.stop_reason = "cancel"

    def _finish(self, result: object) -> None:
        if self.has_finished:
            raise Refused("ctx.finish was called already, and was not rolled back")
        self._fake.finished.append(result)

    def _wait_s(self, error: Exception, n: int, options: CallRetryOptions) -> bool:
        """Record the wait before the next try; False if there is none."""
        wait_s = options.wait_s(error, n)
        if wait_s is not None:
            self._fake.waits.append(wait_s)
        return wait_s is not None


class FakeContext(_Recorded, Context):
    """The `ctx` for calling an `async def` handler."""

    is_for_async: ClassVar = True

    @checked_call(RETRY)
    async def retry(self, fn: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
        """Call fn until it succeeds, without waiting between the tries."""
        retry_options, kwargs = CallRetryOptions.split(options)
        for n in count(1):
            try:
                result = fn(*args, **kwargs)
                return await result if inspect.isawaitable(result) else result
            except Exception as error:
                if not self._wait_s(error, n, retry_options):
                    raise

    @checked_call(RUN_ALL)
    async def run_all(self, name: str, jobs: Iterable[Any], *, failures: Any = "raise") -> Any:
        """Keep the jobs in `sub_jobs`; return the `sub_results` of this name."""
        await self._fake.ask("sub_jobs")
        return self._fake.durable.run_all(name, jobs, failures)

    @checked_call(WAIT_EVENT)
    async def wait_event(
        self,
        event: str,
        *,
        key: str = "",
        timeout: float | timedelta | None = None,
        name: str | None = None,
    ) -> Any:
        """Return the payload that `events` has for this event, or raise TimeoutError."""
        await self._fake.ask("wait")
        return self._fake.durable.wait_event(event, key, timeout, name)

    @checked_call(SLEEP)
    async def sleep(self, name: str, seconds: float | timedelta) -> None:
        """Keep the seconds in `sleeps`, and continue at once."""
        await self._fake.ask("wait")
        self._fake.durable.sleep(name, seconds)

    async def results(self) -> AsyncIterator[JobResult]:
        """The `results` that the test gave."""
        for one in self._fake.durable.results:
            yield one

    @checked_call(GUARD)
    async def guard(self, conn: object) -> None:
        """Do nothing: this attempt is the running one."""
        await self._fake.ask("guard")

    @checked_call(FINISH)
    async def finish(self, *, conn: object, result: Any = None) -> None:
        """Keep the result; the connection is not used."""
        await self._fake.ask("finishing")
        self._finish(result)


class FakeSyncContext(_Recorded, SyncContext):
    """The `ctx` for calling a plain `def` handler."""

    is_for_async: ClassVar = False

    @checked_call(RETRY)
    def retry(self, fn: Callable[..., T], /, *args: Any, **options: Any) -> T:
        """Call fn until it succeeds, without waiting between the tries."""
        retry_options, kwargs = CallRetryOptions.split(options)
        for n in count(1):
            self.check()
            try:
                return fn(*args, **kwargs)
            except Exception as error:
                if not self._wait_s(error, n, retry_options):
                    raise
        raise AssertionError("count never ends")

    @checked_call(RUN_ALL)
    def run_all(self, name: str, jobs: Iterable[Any], *, failures: Any = "raise") -> Any:
        """Keep the jobs in `sub_jobs`; return the `sub_results` of this name."""
        self.check()
        return self._fake.durable.run_all(name, jobs, failures)

    @checked_call(WAIT_EVENT)
    def wait_event(
        self,
        event: str,
        *,
        key: str = "",
        timeout: float | timedelta | None = None,
        name: str | None = None,
    ) -> Any:
        """Return the payload that `events` has for this event, or raise TimeoutError."""
        self.check()
        return self._fake.durable.wait_event(event, key, timeout, name)

    @checked_call(SLEEP)
    def sleep(self, name: str, seconds: float | timedelta) -> None:
        """Keep the seconds in `sleeps`, and continue at once."""
        self.check()
        self._fake.durable.sleep(name, seconds)

    def results(self) -> Iterator[JobResult]:
        """The `results` that the test gave."""
        yield from self._fake.durable.results

    @checked_call(GUARD)
    def guard(self, conn: object) -> None:
        """Do nothing: this attempt is the running one."""
        self.check()

    @checked_call(FINISH)
    def finish(self, *, conn: object, result: Any = None) -> None:
        """Keep the result; the connection is not used."""
        self.check()
        self._finish(result)
