"""Events that are sent to waiting jobs, by name and key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from annotated_types import MaxLen, MinLen

from laneway.domain.annotations import Doc
from laneway.domain.text import check_text
from laneway.domain.wait import KEY_BYTES, NAME_BYTES

EventName = Annotated[str, MinLen(1), MaxLen(NAME_BYTES), Doc("The name that handlers wait for")]
EventKey = Annotated[
    str, MaxLen(KEY_BYTES), Doc("Which one of that name: the handler waits for the same key")
]


@dataclass(frozen=True, slots=True)
class EventDelivery:
    """An event that was sent, and the jobs that continue because of it."""

    id: int
    delivered: Annotated[int, Doc("Jobs that waited for it; others may take it later")]


def check_event(name: object, key: object) -> None:
    """Refuse a name or key that must not be stored."""
    check_text(name, "name", max_bytes=NAME_BYTES)
    if key == "":
        return
    check_text(key, "key", max_bytes=KEY_BYTES)
