"""A part of a list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Items in the order of their list; `next_cursor` asks for the page after, if there is one."""

    items: list[T]
    next_cursor: str | None
