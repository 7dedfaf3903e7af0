"""Splits what a worker sends into parts that one call may carry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

MAX_ITEMS: Final = 1000
# Below the default message limit of servers, with room for the fields around the texts.
MAX_BYTES: Final = 3 * 1024 * 1024
# The fields around the texts of one item.
FIELDS_BYTES: Final = 200


def bytes_of(text: str | None) -> int:
    if text is None:
        return 0
    return len(text) if text.isascii() else len(text.encode())


def parts_of(items: Sequence[T], size_of: Callable[[T], int]) -> Iterator[Sequence[T]]:
    """Splits items into parts that one call may carry."""
    part: list[T] = []
    size = 0
    for item in items:
        more = size_of(item)
        if part and (size + more > MAX_BYTES or len(part) == MAX_ITEMS):
            yield part
            part, size = [], 0
        part.append(item)
        size += more
    if part:
        yield part
