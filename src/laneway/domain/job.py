"""Jobs as every interface shows them, and new jobs as submitted."""

from __future__ import annotations

import os
import struct
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from laneway.domain.approval import Cost, cost_of
from laneway.domain.duration import CENTURY_S
from laneway.domain.job_error import JobError
from laneway.domain.lane import check_job_type
from laneway.domain.payload import DEFAULT_LIMITS, PayloadLimits, check_key
from laneway.domain.states import TERMINAL, Status, label_of
from laneway.domain.text import check_name, check_text
from laneway.errors import InvalidInput

DEFAULT_WORKSPACE: Final = "default"
DEFAULT_MAX_RETRIES: Final = 3

PRIORITY_RANGE: Final = (-32768, 32767)
MAX_RETRIES_RANGE: Final = (0, 32767)
LONGEST_DELAY: Final = CENTURY_S
MAX_TAGS: Final = 64
TAG_BYTES: Final = 128
NAME_BYTES: Final = 128


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of an attempt, in the handler's units."""

    stage: str | None = None
    done: float | None = None
    total: float | None = None
    percent: float | None = None
    message: str | None = None

    @classmethod
    def of(
        cls,
        done: float | None = None,
        total: float | None = None,
        message: str | None = None,
        stage: str | None = None,
    ) -> Progress:
        """Progress with `percent`, if done and total are known."""
        percent = None
        if done is not None and total is not None and total > 0:
            percent = round(min(100.0, max(0.0, 100.0 * done / total)), 2)
        return cls(stage, done, total, percent, message)

    def to_dict(self) -> dict[str, object]:
        return {
            "stage": self.stage,
            "done": self.done,
            "total": self.total,
            "percent": self.percent,
            "message": self.message,
        }


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line that a handler logged."""

    at: datetime
    level: str
    message: str

    def to_dict(self) -> dict[str, object]:
        return {"at": json_time(self.at), "level": self.level, "message": self.message}


@dataclass(frozen=True, slots=True)
class Attempt:
    """One claim of a job and how it ended; `outcome` is None while it runs.

    `log` holds the newest of its `log_lines` lines.
    """

    attempt: int
    worker: str | None = None
    claimed_by: UUID | None = None
    claimed_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    outcome: str | None = None
    error: JobError | None = None
    log: tuple[LogLine, ...] = ()
    log_lines: int = 0

    def to_dict(self, *, debug: bool = True) -> dict[str, object]:
        shown: dict[str, object] = {
            "attempt": self.attempt,
            "worker": self.worker,
            "claimed_by": str(self.claimed_by) if self.claimed_by else None,
            "claimed_at": json_time(self.claimed_at),
            "started_at": json_time(self.started_at),
            "finished_at": json_time(self.finished_at),
            "outcome": self.outcome,
            "error": self.error.to_dict(debug=debug) if self.error else None,
        }
        if debug:
            shown["log"] = [line.to_dict() for line in self.log]
            shown["log_lines"] = self.log_lines
        return shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job, with the same field names in every interface.

    `duplicate` is True only in the result of a submit that found this job by its `unique_key`.
    """

    id: UUID
    job_type: str
    lane: str
    status: Status
    priority: int = 0
    payload: object = None
    result: object = None
    error: JobError | None = None
    progress: Progress | None = None
    checkpoint: object = None
    analysis: object = None
    attempt: int = 0
    retries: int = 0
    max_retries: int = DEFAULT_MAX_RETRIES
    workspace: str = DEFAULT_WORKSPACE
    tags: tuple[str, ...] = ()
    unique_key: str | None = None
    concurrency_key: str | None = None
    created_at: datetime | None = None
    created_by: str | None = None
    approved_at: datetime | None = None
    approved_by: str | None = None
    expires_at: datetime | None = None
    run_at: datetime | None = None
    claimed_by: UUID | None = None
    worker: str | None = None
    claimed_at: datetime | None = None
    lease_until: datetime | None = None
    last_progress_at: datetime | None = None
    cancel_requested_at: datetime | None = None
    cancel_reason: str | None = None
    cancelled_by: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    attempts: tuple[Attempt, ...] = ()
    duplicate: bool = False

    @property
    def label(self) -> str:
        """The status for people."""
        return label_of(self.status, self.approved_by)

    @property
    def cost(self) -> Cost | None:
        """The cost that its analysis estimates."""
        return cost_of(self.analysis)

    @property
    def tries(self) -> int:
        """Starts that the retry budget counts: without analyses and snoozes."""
        if self.approved_at is None:
            return 0
        has_started = self.status is Status.RUNNING or (
            self.status in TERMINAL and self.claimed_at is not None
        )
        return self.retries + has_started

    @property
    def why_ended(self) -> str:
        """The reason and author of a cancel, or the error of a failure; else empty."""
        if self.status is Status.CANCELLED:
            by = f" by {self.cancelled_by}" if self.cancelled_by else ""
            return by + (f": {self.cancel_reason}" if self.cancel_reason else "")
        return f": {self.error.type}: {self.error.message}" if self.error else ""

    def public(self) -> Job:
        """The job with the public part of its error, and without attempts."""
        error = self.error.public() if self.error else None
        return replace(self, error=error, attempts=())

    def to_dict(self, *, debug: bool = True) -> dict[str, object]:
        """The job as JSON values; `debug=False` leaves out private ones."""
        shown: dict[str, object] = {
            "id": str(self.id),
            "job_type": self.job_type,
            "lane": self.lane,
            "status": self.status.value,
            "label": self.label,
            "priority": self.priority,
            "payload": self.payload,
            "result": self.result,
            "error": self.error.to_dict(debug=debug) if self.error else None,
            "progress": self.progress.to_dict() if self.progress else None,
            "checkpoint": self.checkpoint,
            "analysis": self.analysis,
            "attempt": self.attempt,
            "retries": self.retries,
            "max_retries": self.max_retries,
            "workspace": self.workspace,
            "tags": list(self.tags),
            "unique_key": self.unique_key,
            "concurrency_key": self.concurrency_key,
            "created_at": json_time(self.created_at),
            "created_by": self.created_by,
            "approved_at": json_time(self.approved_at),
            "approved_by": self.approved_by,
            "expires_at": json_time(self.expires_at),
            "run_at": json_time(self.run_at),
            "claimed_by": str(self.claimed_by) if self.claimed_by else None,
            "worker": self.worker,
            "claimed_at": json_time(self.claimed_at),
            "lease_until": json_time(self.lease_until),
            "last_progress_at": json_time(self.last_progress_at),
            "cancel_requested_at": json_time(self.cancel_requested_at),
            "cancel_reason": self.cancel_reason,
            "cancelled_by": self.cancelled_by,
            "started_at": json_time(self.started_at),
            "finished_at": json_time(self.finished_at),
            "attempts": [attempt.to_dict(debug=debug) for attempt in self.attempts],
        }
        if self.duplicate:
            shown["duplicate"] = True
        return shown


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job to submit; `payload` is JSON text that `domain.payload` has encoded.

    None means the default of the job type. `delay` is in seconds by the database's clock; give it
    or `run_at`, not both. `check()` refuses values that must not be stored.
    """

    id: UUID
    job_type: str
    payload: str = "{}"
    priority: int | None = None
    run_at: datetime | None = None
    delay: float | None = None
    unique_key: str | None = None
    concurrency_key: str | None = None
    # Set if the submitter has the handler: what it needs first (analysis, approval or both), and
    # its maximum age in seconds.
    needs: str | None = None
    max_age: float | None = None
    workspace: str = DEFAULT_WORKSPACE
    tags: tuple[str, ...] = ()
    max_retries: int | None = None
    created_by: str | None = None
    traceparent: str | None = None

    def check(self, limits: PayloadLimits = DEFAULT_LIMITS) -> NewJob:
        """This job; InvalidInput names the field and the rule that it breaks."""
        check_job_type(self.job_type)
        if self.priority is not None:
            check_priority(self.priority)
        if self.max_retries is not None:
            _check_whole(self.max_retries, "max_retries", MAX_RETRIES_RANGE)
        if self.run_at is not None:
            _check_run_at(self.run_at)
            if self.delay is not None:
                raise InvalidInput("delay", "give delay or run_at, not both")
        if self.delay is not None:
            _check_delay(self.delay)
        if self.unique_key is not None:
            check_key(self.unique_key, "unique_key", limits)
        if self.concurrency_key is not None:
            check_key(self.concurrency_key, "concurrency_key", limits)
        if self.workspace != DEFAULT_WORKSPACE:
            check_text(self.workspace, "workspace", max_bytes=NAME_BYTES)
        if self.tags:
            _check_tags(self.tags)
        if self.created_by is not None:
            check_name(self.created_by, "created_by", max_bytes=2 * NAME_BYTES)
        if self.traceparent is not None:
            check_text(self.traceparent, "traceparent", max_bytes=2 * NAME_BYTES)
        return self


def new_job_id() -> UUID:
    """A fresh UUIDv7 (RFC 9562), greater than every one this process made before."""
    return UUID(int=_ids.next())


def new_job_ids(count: int) -> list[UUID]:
    """Several fresh ids in order, cheaper than one by one."""
    return [UUID(int=number) for number in _ids.take(count)]


class JobIds:
    """48 bits of milliseconds, 42 bits of counter, 32 random bits (RFC 9562 §6.2, method 1).

    The time only sorts ids; nothing compares it between processes.
    """

    def __init__(self, millis: int = 0, counter: int = 0) -> None:
        """Continue after an id with this time and counter."""
        self._lock = threading.Lock()
        self._millis = millis
        self._counter = counter

    def next(self) -> int:
        return self.take(1)[0]

    def take(self, count: int) -> list[int]:
        noise = os.urandom(6 + 4 * count)
        # The top bit starts at 0, so that many ids fit in one millisecond.
        start = int.from_bytes(noise[:6], "big") >> 7
        tails = struct.unpack_from(f"!{count}I", noise, 6)
        now = time.time_ns() // 1_000_000
        with self._lock:
            if now > self._millis:
                self._millis, first = now, start
            else:
                # The same millisecond, or a clock that was set back: continue after the last id.
                first = self._counter + 1
                if (first + count - 1) >> 42:
                    self._millis, first = self._millis + 1, start
            self._counter = first + count - 1
            millis = self._millis
        head = (millis & 0xFFFF_FFFF_FFFF) << 80 | 0x7 << 76 | 0b10 << 62
        return [
            head | (counter >> 30) << 64 | (counter & 0x3FFF_FFFF) << 32 | tail
            for counter, tail in enumerate(tails, first)
        ]


_ids = JobIds()


def _fresh_ids() -> None:
    global _ids
    _ids = JobIds()


if hasattr(os, "register_at_fork"):
    # A child must neither continue its parent's counter nor inherit a held lock.
    os.register_at_fork(after_in_child=_fresh_ids)


def json_time(at: datetime | None) -> str | None:
    """A time as JSON has it: ISO 8601 in UTC."""
    if at is None:
        return None
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def check_priority(value: object) -> None:
    _check_whole(value, "priority", PRIORITY_RANGE)


def _check_whole(value: object, field: str, allowed: tuple[int, int]) -> None:
    low, high = allowed
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise InvalidInput(field, f"must be a whole number from {low} to {high}")


def _check_delay(value: object) -> None:
    if (
        not isinstance(value, (int, float))
        or isinstance(value, bool)
        or not 0 <= value <= LONGEST_DELAY
    ):
        raise InvalidInput("delay", f"must be a number of seconds from 0 to {LONGEST_DELAY:.0f}")


def _check_run_at(value: object) -> None:
    if not isinstance(value, datetime):
        raise InvalidInput("run_at", f"must be a datetime, not {type(value).__name__}")
    if value.utcoffset() is None:
        raise InvalidInput("run_at", "must have a time zone")


def _check_tags(tags: Sequence[object]) -> None:
    if not isinstance(tags, (tuple, list)):
        raise InvalidInput("tags", "must be a list of texts")
    if len(tags) > MAX_TAGS:
        raise InvalidInput("tags", f"at most {MAX_TAGS} tags")
    for i, tag in enumerate(tags):
        check_text(tag, f"tags[{i}]", max_bytes=TAG_BYTES)
