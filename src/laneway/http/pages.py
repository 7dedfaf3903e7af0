"""Lists of the server, fetched page by page as they are read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Final, Generic, TypeVar

from laneway.domain.page import Page
from laneway.http.call import Listing
from laneway.http.runners import AsyncRunner, SyncRunner

T = TypeVar("T")

# The largest page that the server returns.
PAGE: Final = 200


class Pages(Generic[T]):
    """A list: iterate over all items, or fetch one page."""

    def __init__(self, runner: SyncRunner, listing: Listing[T]) -> None:
        self._runner = runner
        self._listing = listing

    def page(self, *, limit: int = 50, cursor: str | None = None) -> Page[T]:
        """At most `limit` items, after the page whose `next_cursor` is given."""
        return self._runner.perform(self._listing.page(limit, cursor))

    def __iter__(self) -> Iterator[T]:
        cursor: str | None = None
        while True:
            found = self.page(limit=PAGE, cursor=cursor)
            yield from found.items
            cursor = found.next_cursor
            if cursor is None:
                return


class AsyncPages(Generic[T]):
    """A list: iterate over all items, or fetch one page."""

    def __init__(self, runner: AsyncRunner, listing: Listing[T]) -> None:
        self._runner = runner
        self._listing = listing

    async def page(self, *, limit: int = 50, cursor: str | None = None) -> Page[T]:
        """At most `limit` items, after the page whose `next_cursor` is given."""
        return await self._runner.perform(self._listing.page(limit, cursor))

    async def __aiter__(self) -> AsyncIterator[T]:
        cursor: str | None = None
        while True:
            found = await self.page(limit=PAGE, cursor=cursor)
            for item in found.items:
                yield item
            cursor = found.next_cursor
            if cursor is None:
                return
