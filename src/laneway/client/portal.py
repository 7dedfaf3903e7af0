"""A daemon thread with an event loop, for callers that have none."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar
from weakref import WeakSet

T = TypeVar("T")
S = TypeVar("S")

_LAST_WORDS_S: Final = 3.0


class Portal(Generic[S]):
    """Runs coroutines on something that lives in its own thread and loop; any thread may call."""

    def __init__(
        self, opened: Callable[[], S], closed: Callable[[S], Coroutine[Any, Any, None]]
    ) -> None:
        self._closed = closed
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="laneway sync", daemon=True
        )
        self._thread.start()
        self._content: S = self._await(_call(opened))
        _portals.add(self)

    def run(self, work: Callable[[S], Coroutine[Any, Any, T]]) -> T:
        """Runs `work` on the content and blocks until it is done."""
        return self._await(work(self._content))

    def close(self) -> None:
        """Closes the content, stops the thread."""
        _portals.discard(self)
        with suppress(TimeoutError):
            self._await(asyncio.wait_for(self._closed(self._content), _LAST_WORDS_S))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_LAST_WORDS_S)
        if not self._thread.is_alive():
            self._loop.close()

    def _await(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            # Ctrl-C while waiting: nobody waits for the answer any more.
            future.cancel()
            raise


async def _call(opened: Callable[[], S]) -> S:
    return opened()


_portals: WeakSet[Portal[Any]] = WeakSet()
# In a forked child their threads do not run; kept, because their connections are the parent's.
_lost: list[Portal[Any]] = []


def _close_all() -> None:
    for portal in list(_portals):
        with suppress(Exception):
            portal.close()


def _after_fork() -> None:
    _lost.extend(_portals)
    _portals.clear()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
