"""The attempts that `run_due` ran, and the errors by which it refuses to go on."""

from __future__ import annotations

from asyncio import CancelledError
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal
from uuid import UUID

from laneway.domain.handler_signals import Cancel, Retry, Snooze
from laneway.domain.job_error import JobError
from laneway.engine.run.handler_channel import Interrupted
from laneway.errors import LanewayError

Outcome = Literal[
    "completed",
    "failed",
    "retrying",
    "snoozed",
    "waiting",
    "cancelled",
    "released",
    "analyzed",
    "fenced",
]
# How the worker stops a handler; the reason is the error of the attempt.
_STOPPED = (CancelledError, Interrupted)
_SHOWN = 5


class AttemptFailed(LanewayError):
    """An attempt failed without an exception of its handler: a timeout, an invalid payload …"""


class TooManyAttempts(LanewayError):
    """Jobs keep coming back: `run_due` stopped at its bound."""


class StillRunning(LanewayError):
    """A handler did not end within the timeout of `run_due`."""


@dataclass(frozen=True, slots=True)
class AttemptReport:
    """One attempt; `retrying`: it failed, and its job runs again later."""

    job_id: UUID
    job_type: str
    attempt: int
    outcome: Outcome
    result: object = None
    error: JobError | None = None
    # The exception that the handler raised.
    exception: BaseException | None = field(default=None, compare=False)
    # Whether `fail_next` raised it.
    is_injected: bool = False

    @property
    def failure(self) -> BaseException | None:
        """The exception to raise in the test; None for those that the handler or the test meant."""
        if self.outcome not in ("failed", "retrying") or self.is_injected:
            return None
        if isinstance(self.exception, (Retry, Snooze, Cancel)):
            return None
        if self.exception is not None and not isinstance(self.exception, _STOPPED):
            return self.exception
        reason = f": {self.error.type}: {self.error.message}" if self.error is not None else ""
        return AttemptFailed(f"{self} {self.outcome}{reason}")

    def __str__(self) -> str:
        return f"attempt {self.attempt} of {self.job_type} {self.job_id}"


@dataclass(frozen=True, slots=True)
class RunReport:
    """The attempts of one `run_due`, in the order in which they ended."""

    attempts: tuple[AttemptReport, ...] = ()

    @property
    def completed(self) -> list[AttemptReport]:
        """The attempts that completed their job."""
        return self._with("completed")

    @property
    def failed(self) -> list[AttemptReport]:
        """Attempts whose jobs have failed for good."""
        return self._with("failed")

    @property
    def retrying(self) -> list[AttemptReport]:
        """Attempts that failed and whose jobs run again later."""
        return self._with("retrying")

    @property
    def snoozed(self) -> list[AttemptReport]:
        """The attempts that raised Snooze."""
        return self._with("snoozed")

    @property
    def waiting(self) -> list[AttemptReport]:
        """The attempts after which their jobs wait: for sub-jobs, an event or a time."""
        return self._with("waiting")

    @property
    def cancelled(self) -> list[AttemptReport]:
        """The attempts that ended their job as cancelled."""
        return self._with("cancelled")

    def raise_failures(self) -> None:
        """Raise the exception of a handler that failed; several as a BaseExceptionGroup."""
        failures = [one.failure for one in self.attempts]
        found = [failure for failure in failures if failure is not None]
        if len(found) == 1:
            raise found[0]
        if found:
            raise BaseExceptionGroup(f"{len(found)} attempts failed", found)

    def _with(self, outcome: Outcome) -> list[AttemptReport]:
        return [one for one in self.attempts if one.outcome == outcome]

    def __len__(self) -> int:
        return len(self.attempts)

    def __iter__(self) -> Iterator[AttemptReport]:
        return iter(self.attempts)

    def __str__(self) -> str:
        counts = Counter(one.outcome for one in self.attempts)
        return ", ".join(f"{count} {outcome}" for outcome, count in counts.items()) or "nothing ran"


def keep_coming_back(attempts: Sequence[AttemptReport], bound: int) -> TooManyAttempts:
    """The error that names the job types, and the jobs, that ran most often."""
    types = Counter(one.job_type for one in attempts)
    jobs = Counter((one.job_type, one.job_id) for one in attempts)
    described = []
    for job_type, count in types.most_common(_SHOWN):
        same = [(job_id, n) for (name, job_id), n in jobs.items() if name == job_type]
        most_id, most = max(same, key=lambda pair: pair[1])
        again = f"job {most_id} ran {most} times" if most > 1 else "each a new job"
        described.append(f"{job_type} ({count} attempts, {again})")
    return TooManyAttempts(
        f"run_due ran {bound} attempts and more are due: {', '.join(described)}."
        " Does a handler submit its own job type? If so many are right, raise max_jobs"
    )
