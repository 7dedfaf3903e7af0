"""A worker in its own thread, for programs without an event loop, such as WSGI applications."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures.thread  # its exit handler is registered first, and so runs after ours
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Self
from weakref import WeakSet

if TYPE_CHECKING:
    from laneway.app.laneway import Laneway
    from laneway.engine.worker import Worker

# A stop may take this much longer than its grace.
_MARGIN_S: Final = 10.0


class SyncWorker:
    """A worker with blocking `start` and `stop`; runs until then, or until the program exits.

    Its thread has an event loop for `async def` handlers; plain ones run in further threads. Start
    it in the process that serves requests: it does not survive a fork.
    """

    _thread: threading.Thread | None
    _lock: threading.Lock

    def __init__(self, app: Laneway, make: Callable[[], Worker]) -> None:
        self._app = app
        self._make = make
        self._reset()

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Returns once the worker takes jobs; raises if the database cannot be used.

        LANEWAY_WORKER=off keeps it from starting. A running worker stays as it is.
        """
        with self._lock:
            if self.is_running:
                return
            started: concurrent.futures.Future[None] = concurrent.futures.Future()
            self._thread = threading.Thread(
                target=self._run, args=[started], name="laneway worker", daemon=True
            )
            _workers.add(self)
            self._thread.start()
            try:
                started.result()
            except BaseException:
                self._stop(0.0)
                raise

    def stop(self, grace_s: float | None = None) -> None:
        """Takes no more jobs, lets jobs finish within the grace and releases the rest."""
        with self._lock:
            self._stop(grace_s)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _reset(self) -> None:
        self._thread = None
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop_request: asyncio.Future[float | None] | None = None

    def _stop(self, grace_s: float | None) -> None:
        thread, self._thread = self._thread, None
        _workers.discard(self)
        if thread is None:
            return
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._request_stop, grace_s)
        within = self._app.settings.shutdown_grace if grace_s is None else grace_s
        thread.join(within + _MARGIN_S)

    def _request_stop(self, grace_s: float | None) -> None:
        if self._stop_request is not None and not self._stop_request.done():
            self._stop_request.set_result(grace_s)

    def _run(self, started: concurrent.futures.Future[None]) -> None:
        try:
            asyncio.run(self._serve(started))
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    async def _serve(self, started: concurrent.futures.Future[None]) -> None:
        self._loop = asyncio.get_running_loop()
        requested = self._stop_request = asyncio.Future[float | None]()
        try:
            worker = await self._start(requested)
            started.set_result(None)
            if worker is not None:
                spent = asyncio.ensure_future(worker.spent.wait())
                await _first(requested, spent)
                spent.cancel()
                await worker.stop(requested.result() if requested.done() else None)
        finally:
            await self._app.leave_loop()

    async def _start(self, requested: asyncio.Future[float | None]) -> Worker | None:
        """The started worker; None if it may not start, or was stopped before."""
        starting = asyncio.ensure_future(self._connect())
        await _first(starting, requested)
        if not starting.done():
            starting.cancel()
            with suppress(asyncio.CancelledError):
                await starting
            return None
        return starting.result()

    async def _connect(self) -> Worker | None:
        worker = self._make()
        if self._app.settings.worker != "off":
            # A worker waits for its database, but an application without one must fail to start.
            await self._app.ready()
        await worker.start()
        return worker if worker.is_running else None


async def _first(*waits: asyncio.Future[Any]) -> None:
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)


_workers: WeakSet[SyncWorker] = WeakSet()


def _stop_all() -> None:
    for worker in list(_workers):
        worker.stop()


def _after_fork() -> None:
    for worker in list(_workers):
        worker._reset()
    _workers.clear()


# Not atexit, if possible: by then, thread pools take no more work, and no job can end.
_register: Callable[[Callable[[], Any]], Any] = getattr(
    threading, "_register_atexit", atexit.register
)
_register(_stop_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
