"""Jobs as every interface shows them, and new jobs as submitted."""

from __future__ import annotations

import os
import struct
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final, Protocol
from uuid import UUID

from laneway.domain.annotations import ALWAYS_SENT, HIDDEN, IF_TRUE, PRIVATE, Doc
from laneway.domain.approval import Cost, cost_of
from laneway.domain.change_rules import check_whole
from laneway.domain.codec import to_json
from laneway.domain.duration import CENTURY_S
from laneway.domain.flow import MAX_PARENTS, AfterFailure, check_after_failure
from laneway.domain.job_error import JobError
from laneway.domain.lane import check_job_type
from laneway.domain.payload import DEFAULT_LIMITS, PayloadLimits, check_key
from laneway.domain.retry import DEFAULT_MAX_RETRIES
from laneway.domain.states import TERMINAL, Status, label_of
from laneway.domain.text import check_name, check_text
from laneway.domain.uniqueness import check_unique_by, check_unique_for
from laneway.domain.wait import WaitsFor
from laneway.errors import InvalidInput

DEFAULT_WORKSPACE: Final = "default"

PRIORITY_RANGE: Final = (-32768, 32767)
MAX_RETRIES_RANGE: Final = (0, 32767)
LONGEST_DELAY: Final = CENTURY_S
MAX_TAGS: Final = 64
TAG_BYTES: Final = 128
NAME_BYTES: Final = 128

Label = Annotated[
    str,
    Doc(
        "The status for people: `queued` for an approved job that needed no approval, `analysing`"
        " for a pending one"
    ),
]


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


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line a handler logged."""

    at: datetime
    level: str
    message: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """One claim of a job and how it ended."""

    attempt: int
    worker: str | None = None
    claimed_by: UUID | None = None
    claimed_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    outcome: Annotated[str | None, Doc("null while it runs")] = None
    error: JobError | None = None
    log: Annotated[
        tuple[LogLine, ...],
        Doc("The newest lines; only with jobs:debug, or for one's own job"),
        PRIVATE,
    ] = ()
    log_lines: Annotated[
        int, Doc("Number of all lines; shown under the same rule as `log`"), PRIVATE
    ] = 0

    def public(self) -> Attempt:
        """The attempt with the public part of its error, and without its log."""
        return replace(self, error=self.error and self.error.public(), log=(), log_lines=0)


Attempts = Annotated[
    tuple[Attempt, ...], Doc("The newest 50, in order; `/jobs/{job_id}/attempts` has all")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job.

    It has the same field names in every interface. Only a `Review` shows the attempts.
    """

    computed_after: ClassVar = {"status": "label"}

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
    created_at: Annotated[datetime | None, ALWAYS_SENT] = None
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
    cancel_requested_at: Annotated[
        datetime | None, Doc("Not set if the job was rejected or its approval expired")
    ] = None
    cancel_reason: str | None = None
    cancelled_by: Annotated[
        str | None,
        Doc(
            "The principal that cancelled or rejected it, or requested that; `laneway` if its"
            " approval expired; null if its handler cancelled it"
        ),
    ] = None
    started_at: Annotated[
        datetime | None,
        Doc("While it runs: when it was claimed; afterwards: when its handler started"),
    ] = None
    finished_at: datetime | None = None
    flow: Annotated[UUID | None, Doc("The flow that it belongs to")] = None
    waits_for: Annotated[WaitsFor | None, Doc("null unless its status is `waiting`")] = None
    attempts: Annotated[tuple[Attempt, ...], HIDDEN] = ()
    duplicate: Annotated[
        bool, Doc("true in the response to a submit that found this existing job"), IF_TRUE
    ] = False

    @property
    def label(self) -> Label:
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
        """The job with the public parts of its errors only."""
        if self.error is None and not self.attempts:
            return self
        attempts = tuple(each.public() for each in self.attempts)
        return replace(self, error=self.error and self.error.public(), attempts=attempts)

    def to_dict(self, *, debug: bool = True) -> dict[str, Any]:
        """The job with its attempts as JSON values; `debug=False` leaves out private ones."""
        attempts = [shown(each, debug=debug) for each in self.attempts]
        return {**shown(self, debug=debug), "attempts": attempts}


class HasPrivateParts(Protocol):
    """A job, an attempt or a review."""

    def public(self) -> HasPrivateParts: ...


def shown(value: HasPrivateParts, *, debug: bool) -> dict[str, Any]:
    """The value as JSON values; `debug=False` leaves out private ones."""
    made: dict[str, Any] = to_json(value if debug else value.public(), private=debug)
    return made


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
    # Seconds for which the job stays unique, also after its end; 0: not unique by its arguments.
    unique_for: float | None = None
    # The arguments that form the unique key, if it is not given.
    unique_by: tuple[str, ...] | None = None
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
    # The jobs that it comes after, the effect if one of them fails, and its name in its flow.
    after: tuple[UUID, ...] = ()
    after_failure: AfterFailure | None = None
    name: str | None = None

    def check(self, limits: PayloadLimits = DEFAULT_LIMITS) -> NewJob:
        """This job; InvalidInput names the field and the rule that it breaks."""
        check_job_type(self.job_type)
        if self.priority is not None:
            check_priority(self.priority)
        if self.max_retries is not None:
            check_whole(self.max_retries, "max_retries", *MAX_RETRIES_RANGE)
        if self.run_at is not None:
            check_time(self.run_at, "run_at")
            if self.delay is not None:
                raise InvalidInput("delay", "give delay or run_at, not both")
        if self.delay is not None:
            _check_delay(self.delay)
        if self.unique_key is not None:
            check_key(self.unique_key, "unique_key", limits)
        if self.unique_for is not None:
            check_unique_for(self.unique_for)
        if self.unique_by is not None:
            check_unique_by(self.unique_by)
        if self.concurrency_key is not None:
            check_key(self.concurrency_key, "concurrency_key", limits)
        if self.workspace != DEFAULT_WORKSPACE:
            check_text(self.workspace, "workspace", max_bytes=NAME_BYTES)
        if self.tags:
            check_tags(self.tags)
        if self.created_by is not None:
            check_name(self.created_by, "created_by", max_bytes=2 * NAME_BYTES)
        if self.traceparent is not None:
            check_text(self.traceparent, "traceparent", max_bytes=2 * NAME_BYTES)
        if len(self.after) > MAX_PARENTS:
            raise InvalidInput(
                "after", f"at most {MAX_PARENTS} jobs, not {len(self.after)}: use a flow for more"
            )
        if self.after_failure is not None:
            check_after_failure(self.after_failure)
        return self

    @property
    def is_unique(self) -> bool:
        """Whether it may be a duplicate of another job."""
        if self.unique_key is not None or self.unique_for:
            return True
        return self.unique_by is not None and self.unique_for is None


def new_job_id() -> UUID:
    """A new UUIDv7 (RFC 9562), greater than all earlier ones of this process."""
    return UUID(int=_ids.next())


def new_job_ids(count: int) -> list[UUID]:
    """Several new ids in order, cheaper than one by one."""
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


def check_priority(value: object) -> None:
    check_whole(value, "priority", *PRIORITY_RANGE)


def _check_delay(value: object) -> None:
    if (
        not isinstance(value, (int, float))
        or isinstance(value, bool)
        or not 0 <= value <= LONGEST_DELAY
    ):
        raise InvalidInput("delay", f"must be a number of seconds from 0 to {LONGEST_DELAY:.0f}")


def check_time(value: object, field: str) -> None:
    """Refuse a value that is not a time with a time zone."""
    if not isinstance(value, datetime):
        raise InvalidInput(field, f"must be a datetime, not {type(value).__name__}")
    if value.utcoffset() is None:
        raise InvalidInput(field, "must have a time zone")


def check_tags(tags: Sequence[object]) -> None:
    """Refuse tags that are not a short list of short texts."""
    if not isinstance(tags, (tuple, list)):
        raise InvalidInput("tags", "must be a list of texts")
    if len(tags) > MAX_TAGS:
        raise InvalidInput("tags", f"at most {MAX_TAGS} tags")
    for i, tag in enumerate(tags):
        check_text(tag, f"tags[{i}]", max_bytes=TAG_BYTES)
