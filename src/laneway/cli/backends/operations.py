"""Declared operations, the same way in both backends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeVar

from laneway.domain.page import Page
from laneway.domain.verb_rules import LONGEST_PAGE
from laneway.operations.operation import Invocation

R = TypeVar("R")
T = TypeVar("T")


class OperationBackend(ABC):
    """Does operations as they are declared."""

    @abstractmethod
    async def call(self, asked: Invocation[R]) -> R:
        """Do the operation."""

    @abstractmethod
    async def page(self, asked: Invocation[Page[T]], limit: int, cursor: str | None) -> Page[T]:
        """Read one page of a list."""

    async def items(self, asked: Invocation[Page[T]]) -> list[T]:
        """Read a whole list."""
        found = await self.page(asked, LONGEST_PAGE, None)
        items = found.items
        while found.next_cursor is not None:
            found = await self.page(asked, LONGEST_PAGE, found.next_cursor)
            items += found.items
        return items
