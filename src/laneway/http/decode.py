"""Decoders of the server's responses into domain values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from laneway.domain.flow import Flow
from laneway.domain.job import Attempt, Job
from laneway.domain.review import Review
from laneway.domain.storage import Storage
from laneway.errors import ServerError
from laneway.http.call import CallResponse
from laneway.http.models import (
    ControlChanged,
    DatabaseState,
    Event,
    EventData,
    JobsChanged,
    Opened,
)

T = TypeVar("T")

_readers: dict[type, TypeAdapter[Any]] = {}


def read(kind: type[T], value: object) -> T:
    """Validate a value as a type; fields that only a newer server sends are dropped."""
    try:
        return _reader(kind).validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ServerError(
            f"the server's response could not be decoded: {where}: {first['msg']}"
        ) from None


def _reader(kind: type[T]) -> TypeAdapter[T]:
    if kind not in _readers:
        _readers[kind] = TypeAdapter(kind)
    return _readers[kind]


def body(kind: type[T]) -> Callable[[CallResponse], T]:
    """A decoder of responses that hold one such value."""
    return lambda response: read(kind, response.body)


def job(value: Any) -> Job:
    """A job as lists, verbs and events send it."""
    return read(Job, {**value, "duplicate": bool(value.get("duplicate"))})


def attempt(value: Any) -> Attempt:
    """An attempt; without jobs:debug the server leaves out its log."""
    shown = {name: each for name, each in value.items() if each is not None}
    return read(Attempt, shown)


def review(value: Any) -> Review:
    return read(Review, {**value, "job": {**value, "duplicate": False}})


def database(value: Any) -> DatabaseState:
    return read(DatabaseState, {**value, "storage": read(Storage, value)})


def event(event_id: str | None, name: str, data: Any) -> Event:
    return Event(event_id, name, _event_data(name, data))


def _event_data(name: str, data: Any) -> EventData:
    subject, _, change = name.partition(".")
    if subject == "job":
        return job(data)
    if subject == "flow":
        return read(Flow, data)
    if name == "stream.opened":
        return read(Opened, data)
    if name == "jobs.changed":
        return read(JobsChanged, data)
    if change == "changed":
        return read(ControlChanged, data)
    return data if isinstance(data, dict) else {"data": data}
