"""Reused daemon threads for plain handlers, which never delay the exit of the process."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable


class Threads:
    """Threads made on demand; a handler that never returns does not keep the process alive."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._idle = 0
        self._made = 0
        self._lock = threading.Lock()

    @property
    def idle(self) -> int:
        """The number of threads that wait for work."""
        return self._idle

    def run(self, fn: Callable[[], None]) -> None:
        """Run fn in a thread at once; the worker's capacity bounds how many run."""
        with self._lock:
            if self._idle > 0:
                self._idle -= 1
                self._work.put(fn)
                return
            name = f"laneway-{self._made + 1}"
            # Start before queueing: if no thread can be started, fn must not run later.
            threading.Thread(target=self._serve, name=name, daemon=True).start()
            self._made += 1
            self._work.put(fn)

    def close(self) -> None:
        """End the idle threads; busy ones end when their handlers return."""
        with self._lock:
            for _ in range(self._made):
                self._work.put(None)

    def _serve(self) -> None:
        while (fn := self._work.get()) is not None:
            fn()
            with self._lock:
                self._idle += 1
