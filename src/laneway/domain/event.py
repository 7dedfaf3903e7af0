"""Events of streams, their topics, and the positions of readers in the log."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

from laneway.domain.codec import json_time, to_json
from laneway.domain.job import Job
from laneway.domain.job_error import PRIVATE_MESSAGE
from laneway.domain.lane import check_job_type, check_lane_name
from laneway.domain.states import TERMINAL, Status, label_of
from laneway.errors import InvalidInput

# Streams watch these instead of the number of a job: all jobs, or the control plane.
EVERY_JOB: Final = 0
CONTROL: Final = -1
MAX_TOPICS: Final = 100
LONGEST_CURSOR: Final = 8192

TopicKind = Literal["jobs", "job", "flow", "lane", "job_type", "approvals", "lanes"]

_HEX: Final = re.compile(r"[0-9a-f]{1,16}(?:\.[0-9a-f]{1,16})*")
_NUMBER: Final = re.compile(r"[0-9]{1,19}")
_LOG: Final = re.compile(r"[0-9a-f]{8}")
_LARGEST: Final = 2**63 - 1
_TIMES: Final = (
    "approved_at", "expires_at", "run_at", "claimed_at", "last_progress_at",
    "cancel_requested_at", "started_at", "finished_at",
)  # fmt: skip
# Changes of many jobs at once that may concern approvers.
_APPROVAL_CHANGES: Final = frozenset({"submitted", "settled", "ended", None})


class Event(NamedTuple):
    """One row of the log; without `seq`: about many jobs at once, or the control plane."""

    id: int
    seq: int | None
    name: str
    workspace: str | None
    lane: str | None
    job_type: str | None
    created_by: str | None
    state: Mapping[str, Any]

    @property
    def is_terminal(self) -> bool:
        return self.seq is not None and self.state["status"] in TERMINAL


def job_at(event: Event, job: Job, *, debug: bool) -> dict[str, Any]:
    """The job as it was when the event was logged, as lists show it; never with a traceback.

    `job` is the job now, for values that do not change or are too large for the log. `debug` adds
    the message of a private error.
    """
    shown: dict[str, Any] = to_json(job, private=False)
    is_same_attempt = shown["attempt"] == event.state["attempt"]
    shown |= event.state
    shown["error"] = _error(event, debug=debug)
    shown |= {name: _time(event.state.get(name)) for name in _TIMES}
    shown["label"] = label_of(Status(event.state["status"]), event.state.get("approved_by"))
    shown["lane"] = event.lane
    if not (is_same_attempt and event.state["status"] == Status.RUNNING):
        shown["lease_until"] = None
    if not (is_same_attempt and event.is_terminal):
        shown["result"] = None
    return shown


def has_private_error(event: Event) -> bool:
    """Whether readers with jobs:debug see more of this event than others."""
    error = event.state.get("error")
    return error is not None and error.get("public") is not True


def _error(event: Event, *, debug: bool) -> dict[str, Any] | None:
    error = event.state["error"]
    if error is None:
        return None
    is_hidden = has_private_error(event) and not debug
    message = PRIVATE_MESSAGE if is_hidden else error["message"]
    return {"type": error["type"], "message": message}


def _time(text: str | None) -> str | None:
    return None if text is None else json_time(datetime.fromisoformat(text))


@dataclass(frozen=True, slots=True)
class Topic:
    """A subject that a stream subscribes to."""

    kind: TopicKind
    name: str | None = None

    @classmethod
    def of(cls, text: str) -> Topic:
        kind, colon, name = text.partition(":")
        match kind, bool(colon):
            case ("jobs" | "approvals" | "lanes") as plain, False:
                return cls(plain)
            case ("job" | "flow") as one, True:
                try:
                    return cls(one, str(UUID(name)))
                except ValueError:
                    raise InvalidInput(
                        "topic", f"{one}: must be followed by a {one}'s id"
                    ) from None
            case "lane", True:
                return cls("lane", check_lane_name(name, "topic"))
            case "job_type", True:
                return cls("job_type", check_job_type(name, "topic"))
        raise InvalidInput(
            "topic",
            "must be jobs, job:<id>, flow:<id>, lane:<name>, job_type:<name>, approvals or lanes",
        )

    def __str__(self) -> str:
        return self.kind if self.name is None else f"{self.kind}:{self.name}"

    def matches(self, event: Event) -> bool:
        """Whether an event about jobs belongs to this topic; `job` is matched by its number."""
        match self.kind:
            case "jobs":
                return True
            case "flow":
                # Of many jobs at once, the event does not know whose they are.
                return event.seq is None or event.state.get("flow") == self.name
            case "lane":
                return event.lane in (self.name, None)
            case "job_type":
                return event.job_type in (self.name, None)
            case "approvals":
                return _concerns_approval(event)
        return False


def _concerns_approval(event: Event) -> bool:
    """Whether a job began to wait for an approval, or stopped waiting."""
    state = event.state
    if event.seq is None:
        return state.get("change") in _APPROVAL_CHANGES
    return (
        state["status"] == Status.AWAITING_APPROVAL
        or event.name == "job.approved"
        or (event.is_terminal and state["approved_at"] is None)
    )


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The transactions that had ended at a moment: `xmin:xmax:running,…`, as in PostgreSQL."""

    xmin: int
    xmax: int
    running: tuple[int, ...] = ()

    @classmethod
    def of(cls, text: str) -> Snapshot:
        xmin, xmax, running = text.split(":")
        return cls(int(xmin), int(xmax), tuple(map(int, filter(None, running.split(",")))))

    def __str__(self) -> str:
        return f"{self.xmin}:{self.xmax}:{','.join(map(str, self.running))}"

    @property
    def encoded(self) -> str:
        """A short form for cursors: numbers in base 16, all but the first relative to it."""
        rest = (self.xmax, *self.running)
        return ".".join(f"{number:x}" for number in (self.xmin, *(n - self.xmin for n in rest)))

    @classmethod
    def decode(cls, code: str) -> Snapshot:
        if not _HEX.fullmatch(code):
            raise ValueError(code)
        xmin, *rest = (int(part, 16) for part in code.split("."))
        xmax, *running = (xmin + part for part in rest)
        is_ordered = xmin > 0 and running == sorted(set(running)) and all(n < xmax for n in running)
        if xmax > _LARGEST or not is_ordered:
            raise ValueError(code)
        return cls(xmin, xmax, tuple(running))


@dataclass(frozen=True, slots=True)
class LogPosition:
    """The position of a reader of one job: the number of an event, and the id of its log."""

    id: int
    log: str | None = None

    def __str__(self) -> str:
        return str(self.id) if self.log is None else f"{self.id}.{self.log}"

    @classmethod
    def read(cls, text: str) -> LogPosition:
        """The position; InvalidInput if no stream has sent this text."""
        number, dot, log = text.partition(".")
        is_number = _NUMBER.fullmatch(number) and int(number) <= _LARGEST
        if not is_number or (dot and not _LOG.fullmatch(log)):
            raise InvalidInput("Last-Event-ID", "must be the id of an event of this stream")
        return cls(int(number), log or None)


@dataclass(frozen=True, slots=True)
class Cursor:
    """The position of a reader of several topics.

    The reader has read everything before `prev`, and events up to `id` of those that became visible
    between the two snapshots. `log` is the id of the log; cursors of older servers have none.
    """

    prev: Snapshot
    next: Snapshot
    id: int = 0
    log: str | None = None

    def __str__(self) -> str:
        log = "" if self.log is None else f"/{self.log}"
        return f"{self.prev.encoded}/{self.next.encoded}/{self.id}{log}"

    @classmethod
    def read(cls, text: str) -> Cursor:
        """The cursor; InvalidInput if no stream has sent this text."""
        try:
            prev, following, number, *rest = text[:LONGEST_CURSOR].split("/")
            position = LogPosition.read(".".join((number, *rest)))
            return cls(Snapshot.decode(prev), Snapshot.decode(following), position.id, position.log)
        except (ValueError, InvalidInput):
            raise InvalidInput("Last-Event-ID", "must be the id of an event of /events") from None
