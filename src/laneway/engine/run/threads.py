"""Threads for plain handlers: few, reused, and never in the way of the process's exit."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable


class Threads:
    """Daemon threads made on demand: one that never returns must not keep the process alive."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._idle = 0
        self._made = 0
        self._lock = threading.Lock()

    @property
    def idle(self) -> int:
        """How many threads wait for work."""
        return self._idle

    def run(self, fn: Callable[[], None]) -> None:
        """Runs fn in a thread at once; how many may run is decided by the room, not here."""
        with self._lock:
            if self._idle > 0:
                self._idle -= 1
                self._work.put(fn)
                return
            name = f"laneway-{self._made + 1}"
            # There may be no more threads to be had: then fn must not be left for another.
            threading.Thread(target=self._serve, name=name, daemon=True).start()
            self._made += 1
            self._work.put(fn)

    def close(self) -> None:
        """Lets the idle threads end; busy ones end when their handlers return."""
        with self._lock:
            for _ in range(self._made):
                self._work.put(None)

    def _serve(self) -> None:
        while (fn := self._work.get()) is not None:
            fn()
            with self._lock:
                self._idle += 1
