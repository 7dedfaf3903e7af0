"""Answers of the server as the values that every door has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from laneway.domain.access import NewToken, Token
from laneway.domain.freeze import Freeze, HeldJob, LaneWatch, Thawed
from laneway.domain.job import Attempt, Job
from laneway.domain.lane import Lane
from laneway.domain.limit import Limit, LimitStatus
from laneway.domain.overview import (
    ActiveJob,
    Gate,
    LaneStatus,
    OldSnapshot,
    PriorityLoad,
    TypeLoad,
    WorkerRow,
)
from laneway.domain.review import Review
from laneway.domain.stats import Failure, Failures, Point, Series
from laneway.domain.storage import Storage
from laneway.errors import ServerError
from laneway.http.call import CallResponse
from laneway.http.models import (
    ControlChanged,
    DatabaseState,
    Event,
    Happened,
    JobsChanged,
    Opened,
)

T = TypeVar("T")

_readers: dict[type, TypeAdapter[Any]] = {}


def read(kind: type[T], value: object) -> T:
    """The value as its type; what a newer server says beside it is left out."""
    try:
        return _reader(kind).validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ServerError(
            f"the server's answer is not understood: {where}: {first['msg']}"
        ) from None


def _reader(kind: type[T]) -> TypeAdapter[T]:
    if kind not in _readers:
        _readers[kind] = TypeAdapter(kind)
    return _readers[kind]


def body(kind: type[T]) -> Callable[[CallResponse], T]:
    """A decoder of answers that are one such value."""
    return lambda answer: read(kind, answer.body)


def nothing(answer: CallResponse) -> None:
    return None


def job(value: Any) -> Job:
    """As lists, verbs and events tell it."""
    return read(Job, {**value, "duplicate": bool(value.get("duplicate"))})


def attempt(value: Any) -> Attempt:
    """Without its log where that is not for these eyes."""
    shown = {name: each for name, each in value.items() if each is not None}
    return read(Attempt, shown)


def review(value: Any) -> Review:
    return read(Review, {**value, "job": {**value, "duplicate": False}})


def _row(kind: type[T], value: Any, **more: Any) -> T:
    """A row of names that takes no others."""
    names: tuple[str, ...] = kind._fields  # type: ignore[attr-defined]
    return read(kind, {name: value[name] for name in names if name in value} | more)


def lane_status(value: Any) -> LaneStatus:
    waiting = tuple(
        read(TypeLoad, {**each, "is_capped": each["depth_is_capped"]}) for each in value["waiting"]
    )
    told = value.get("by_priority")
    by_priority = (
        None
        if told is None
        else tuple(read(PriorityLoad, {**x, "is_capped": x["depth_is_capped"]}) for x in told)
    )
    return LaneStatus(
        read(Lane, value), value["slots_used"], waiting, value["frozen_by"], by_priority
    )


def gate(value: Any) -> Gate:
    return _row(Gate, value)


def active(value: Any) -> ActiveJob:
    told = value["progress"] or dict.fromkeys(("stage", "done", "total", "message"))
    return _row(ActiveJob, {**value, **told}, worker_id=value["claimed_by"])


def worker(value: Any) -> WorkerRow:
    """One that has not ended: no others are told."""
    return _row(WorkerRow, value, stopped_at=None)


def old_snapshot(value: Any) -> OldSnapshot:
    return _row(OldSnapshot, value)


def limit_status(value: Any) -> LimitStatus:
    return LimitStatus(
        read(Limit, value),
        value["running"],
        value["busiest"],
        value["waiting"],
        value["waiting_is_capped"],
        # Servers of the version before do not name them.
        tuple(value.get("holders", ())),
    )


def freeze(value: Any) -> Freeze:
    lanes = tuple(
        # Whatever is still watched drains.
        _row(
            LaneWatch,
            {**each, "jobs": [_row(HeldJob, held) for held in each["jobs"]]},
            enabled=False,
        )
        for each in value["lanes"]
    )
    return Freeze(lanes, value["waited_s"], value["is_thawed"])


def thawed(value: Any) -> list[Thawed]:
    return [_row(Thawed, each) for each in value["lanes"]]


def series(value: Any) -> Series:
    return Series([_row(Point, each) for each in value["points"]], value["is_capped"])


def failures(value: Any) -> Failures:
    return Failures([_row(Failure, each) for each in value["items"]], value["is_capped"])


def database(value: Any) -> DatabaseState:
    oldest = value["oldest_transaction"]
    told = {**value, "oldest_transaction": None if oldest is None else old_snapshot(oldest)}
    return read(DatabaseState, {**value, "storage": read(Storage, told)})


def new_token(value: Any) -> NewToken:
    return NewToken(value["secret"], read(Token, value))


def event(event_id: str | None, name: str, data: Any) -> Event:
    return Event(event_id, name, _happened(name, data))


def _happened(name: str, data: Any) -> Happened:
    about, _, change = name.partition(".")
    if about == "job":
        return job(data)
    if name == "stream.opened":
        return read(Opened, data)
    if name == "jobs.changed":
        return read(JobsChanged, data)
    if change == "changed":
        return read(ControlChanged, data)
    return data if isinstance(data, dict) else {"data": data}
