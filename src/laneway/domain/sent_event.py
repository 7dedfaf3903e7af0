"""Events that are sent to waiting jobs, by name and key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from annotated_types import Interval, MaxLen, MinLen

from laneway.domain.annotations import Doc
from laneway.domain.duration import DAY_S, YEAR_S, seconds_of
from laneway.domain.text import check_text
from laneway.domain.wait import KEY_BYTES, NAME_BYTES
from laneway.errors import InvalidInput

EventName = Annotated[str, MinLen(1), MaxLen(NAME_BYTES), Doc("The name that handlers wait for")]
EventKey = Annotated[
    str, MaxLen(KEY_BYTES), Doc("Which one of that name: the handler waits for the same key")
]
# How long an event is kept.
RETENTION_S: Final = DAY_S
EventRetention = Annotated[
    float,
    Interval(ge=1, le=YEAR_S),
    Doc("Seconds for which it is kept for handlers that begin to wait later"),
]


@dataclass(frozen=True, slots=True)
class EventDelivery:
    """An event that was sent, and the jobs that continue because of it."""

    id: int
    delivered: Annotated[int, Doc("Jobs that waited for it; others may take it later")]


def check_event(name: object, key: object, retention: object = RETENTION_S) -> float:
    """The retention in seconds; InvalidInput for it, a name or a key that must not be stored."""
    check_text(name, "name", max_bytes=NAME_BYTES)
    if key != "":
        check_text(key, "key", max_bytes=KEY_BYTES)
    seconds = seconds_of(retention, "retention")
    if not 1 <= seconds <= YEAR_S:
        raise InvalidInput("retention", "must be at least a second and at most a year")
    return seconds
