"""The items that `ctx.track` gives to an `async def` handler."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable
from typing import Generic, NoReturn, TypeVar

T = TypeVar("T")


class TrackedItems(AsyncIterator[T], Generic[T]):
    """An async generator that a plain `for` refuses by name."""

    __slots__ = ("_items",)

    def __init__(self, items: AsyncGenerator[T, None]) -> None:
        self._items = items

    # The generator itself: this wrapper costs nothing per item.
    def __aiter__(self) -> AsyncGenerator[T, None]:
        return self._items

    async def __anext__(self) -> T:
        return await anext(self._items)

    async def aclose(self) -> None:
        await self._items.aclose()

    def __iter__(self) -> NoReturn:
        raise TypeError(
            "ctx.track in an async def needs async for: write `async for item in ctx.track(items)`"
        )


async def each(items: Iterable[T] | AsyncIterable[T]) -> AsyncGenerator[T, None]:
    """The items one by one, of an iterable of either kind."""
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item
