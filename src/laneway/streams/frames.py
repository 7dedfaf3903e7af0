"""Events in the text/event-stream format."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

from laneway.domain.event import Cursor, Event, LogPosition, Snapshot, has_private_error, job_at
from laneway.domain.job import Job
from laneway.domain.json_writer import write_json

PING: Final = b": ping\n\n"
# Browsers reconnect after a second.
OPENING: Final = b"retry: 1000\n\n"


def frame(name: str, number: str | int, data: Any) -> bytes:
    """One event. JSON has no line breaks, so the data is one line."""
    return b"id: %b\n%b" % (str(number).encode(), _body(name, data))


def _body(name: str, data: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), write_json(data))


class Rendering:
    """The frames of one event; its data is written once for all readers of the same fields."""

    def __init__(self, event: Event, job: Job | None, name: str | None = None) -> None:
        self.event = event
        self._job = job
        self._name = name or event.name

    @cached_property
    def is_same_for_all(self) -> bool:
        """Whether all readers see the same fields."""
        return self._job is None or not has_private_error(self.event)

    @cached_property
    def _public(self) -> bytes:
        return _body(self._name, _data(self.event, self._job, debug=False))

    @cached_property
    def _private(self) -> bytes:
        return _body(self._name, _data(self.event, self._job, debug=True))

    def _body(self, *, debug: bool) -> bytes:
        return self._private if debug and not self.is_same_for_all else self._public

    def job_frame(self, log: str | None, *, debug: bool) -> bytes:
        """The frame for a stream of its job."""
        place = str(LogPosition(self.event.id, log))
        return b"id: %b\n%b" % (place.encode(), self._body(debug=debug))

    def topic_frame(
        self, prev: Snapshot, following: Snapshot, log: str | None, *, debug: bool
    ) -> bytes:
        """The frame for a stream of topics, which read it between two snapshots."""
        cursor = Cursor(prev, following, self.event.id, log)
        return b"id: %b\n%b" % (str(cursor).encode(), self._body(debug=debug))


def _data(event: Event, job: Job | None, *, debug: bool) -> dict[str, Any]:
    if job is not None:
        return job_at(event, job, debug=debug)
    if event.name == "jobs.changed":
        return {
            "change": event.state.get("change"),
            "count": event.state.get("count"),
            "workspace": event.workspace,
            "lane": event.lane,
            "job_type": event.job_type,
        }
    kind = event.name.partition(".")[0]
    named = {name: event.state.get(name) for name in ("name", "by", "before", "after")}
    return {"kind": kind, **named}
