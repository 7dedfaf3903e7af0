"""Lists that are read page by page and shown as a whole."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")
C = TypeVar("C")

PAGE = 200


async def every(
    read: Callable[[C | None], Awaitable[list[T]]], cursor_of: Callable[[T], C]
) -> list[T]:
    """Read all items; `read` returns at most `PAGE` items after a cursor."""
    items: list[T] = []
    after: C | None = None
    while page := await read(after):
        items += page
        if len(page) < PAGE:
            break
        after = cursor_of(page[-1])
    return items
