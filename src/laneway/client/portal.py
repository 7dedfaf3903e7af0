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

_CLOSE_TIMEOUT_S: Final = 3.0


class Portal(Generic[S]):
    """Runs coroutines on a resource in a separate thread and loop; any thread may call it."""

    def __init__(
        self, open_: Callable[[], S], close: Callable[[S], Coroutine[Any, Any, None]]
    ) -> None:
        self._close_resource = close
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="laneway sync", daemon=True
        )
        self._thread.start()
        self._resource: S = self._await(_call(open_))
        _portals.add(self)

    def run(self, work: Callable[[S], Coroutine[Any, Any, T]]) -> T:
        """Runs `work` on the resource and blocks until it is done."""
        return self._await(work(self._resource))

    def close(self) -> None:
        """Closes the resource and stops the thread."""
        _portals.discard(self)
        with suppress(TimeoutError):
            closing = self._close_resource(self._resource)
            self._await(asyncio.wait_for(closing, _CLOSE_TIMEOUT_S))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CLOSE_TIMEOUT_S)
        if not self._thread.is_alive():
            self._loop.close()

    def _await(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            # After Ctrl-C the caller no longer waits for the result.
            future.cancel()
            raise


async def _call(open_: Callable[[], S]) -> S:
    return open_()


_portals: WeakSet[Portal[Any]] = WeakSet()
# A forked child has no thread for these. It keeps them, because closing would harm the parent's
# connections.
_inherited: list[Portal[Any]] = []


def _close_all() -> None:
    for portal in list(_portals):
        with suppress(Exception):
            portal.close()


def _after_fork() -> None:
    _inherited.extend(_portals)
    _portals.clear()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
