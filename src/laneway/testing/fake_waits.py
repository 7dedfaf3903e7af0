"""The waits of fake contexts: they return what the test gave, and record what was asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias
from uuid import uuid4

from laneway.domain.duration import check_wait
from laneway.domain.wait import JobResult
from laneway.engine.run.waits import check_completed, read_sub_jobs
from laneway.errors import InvalidInput, WaitTimeout

# The results of the sub-jobs of one `run_all`: each in order, or a function of each job.
SubResults: TypeAlias = Sequence[object] | Callable[["FakeSubJob"], object]


@dataclass(frozen=True, slots=True)
class FakeSubJob:
    """A job that the handler gave to `ctx.run_all`."""

    job_type: str
    payload: Any


class FakeWaits:
    """Answers the waits of one fake context from memory."""

    def __init__(
        self,
        results: Iterable[object] = (),
        sub_results: Mapping[str, SubResults] | None = None,
        events: Mapping[str, object] | None = None,
    ) -> None:
        self.results = [_as_result(one, "fake") for one in results]
        self._sub_results = dict(sub_results or {})
        self._events = dict(events or {})
        self.sub_jobs: dict[str, list[FakeSubJob]] = {}
        self.sleeps: dict[str, float] = {}

    def run_all(self, name: str, jobs: Iterable[Any], failures: str) -> list[Any]:
        if failures not in ("raise", "return"):
            raise InvalidInput("failures", "must be 'raise' or 'return'")
        requests = read_sub_jobs(jobs)
        given = [FakeSubJob(one.job_type, one.payload) for one in requests]
        self.sub_jobs[name] = given
        if name not in self._sub_results:
            raise InvalidInput(
                "sub_results",
                f"has no {name!r}: give the results of its {len(given)} sub-jobs to FakeContext",
            )
        answers = self._sub_results[name]
        values = [answers(one) for one in given] if callable(answers) else list(answers)
        if len(values) != len(given):
            raise InvalidInput(
                "sub_results", f"{name!r} has {len(values)} results for {len(given)} sub-jobs"
            )
        found = [_as_result(value, job.job_type) for value, job in zip(values, given, strict=True)]
        if failures == "return":
            return found
        check_completed(name, found)
        return [one.result for one in found]

    def wait_event(
        self, event: str, key: str, timeout: float | timedelta | None, name: str | None
    ) -> Any:
        if timeout is not None:
            check_wait(timeout, "timeout")
        for known in (name, f"{event}:{key}", event):
            if known is not None and known in self._events:
                payload = self._events[known]
                break
        else:
            raise InvalidInput(
                "events", f"has no {event!r}: give its payload, or TimeoutError, to FakeContext"
            )
        if payload is TimeoutError or isinstance(payload, TimeoutError):
            raise WaitTimeout(f"event {event!r} did not come in time")
        return payload

    def sleep(self, name: str, seconds: float | timedelta) -> None:
        self.sleeps[name] = check_wait(seconds, "seconds")


def _as_result(value: object, job_type: str) -> JobResult:
    if isinstance(value, JobResult):
        return value
    return JobResult(uuid4(), job_type, None, "completed", value)
