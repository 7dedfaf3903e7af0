"""One page of a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Items in the order of their list; `next_cursor` requests the next page, if any.

    A long search stops before the page is full, at `looked_back_to`; `next_cursor` continues it.
    """

    items: list[T]
    next_cursor: str | None
    looked_back_to: datetime | None = None


def page_by_name(
    items: Iterable[T], name: Callable[[T], str], limit: int, cursor: str | None
) -> Page[T]:
    """A page of a list that is short enough to be read whole, in the order of its names."""
    rest = sorted((item for item in items if cursor is None or name(item) > cursor), key=name)
    page = rest[:limit]
    return Page(page, name(page[-1]) if len(rest) > limit else None)
