"""Lists that are read page by page and shown whole."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")
C = TypeVar("C")

PAGE = 200


async def every(
    read: Callable[[C | None], Awaitable[list[T]]], place_of: Callable[[T], C]
) -> list[T]:
    """All items; `read` answers those after a place, `PAGE` at most."""
    items: list[T] = []
    after: C | None = None
    while page := await read(after):
        items += page
        if len(page) < PAGE:
            break
        after = place_of(page[-1])
    return items
