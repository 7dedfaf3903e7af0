"""A part of a list."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Items in the order of their list; `next_cursor` asks for the page after, if there is one.

    A search that would take long ends before the page is full: `looked_back_to` says how far it
    came, and `next_cursor` goes on from there.
    """

    items: list[T]
    next_cursor: str | None
    looked_back_to: datetime | None = None
