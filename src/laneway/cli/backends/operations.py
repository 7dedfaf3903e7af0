"""Declared operations, the same way in both backends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ParamSpec, TypeVar

from laneway.cli.paging import PAGE
from laneway.domain.page import Page
from laneway.operations.operation import Operation

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class OperationBackend(ABC):
    """Does operations as they are declared."""

    @abstractmethod
    async def call(self, operation: Operation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Do the operation."""

    @abstractmethod
    async def page(
        self,
        operation: Operation[P, Page[T]],
        limit: int,
        cursor: str | None,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> Page[T]:
        """Read one page of a list."""

    async def items(
        self, operation: Operation[P, Page[T]], *args: P.args, **kwargs: P.kwargs
    ) -> list[T]:
        """Read a whole list."""
        found = await self.page(operation, PAGE, None, *args, **kwargs)
        items = found.items
        while found.next_cursor is not None:
            found = await self.page(operation, PAGE, found.next_cursor, *args, **kwargs)
            items += found.items
        return items
