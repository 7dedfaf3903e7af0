"""Ends a worker process that does not stop in time, whatever its handlers do.

A handler may block the event loop, or leave behind what the interpreter waits for at exit:
multiprocessing children, threads, hooks. A thread started before any handler waits for the
deadline, kills those children, then exits.
"""

from __future__ import annotations

import contextlib
import math
import os
import queue
import sys
import threading
import time

# After the grace: time until children of handlers are killed, and until the worker exits.
CHILDREN_S = 3.0
EXIT_S = 10.0
# After the worker stopped: time for the interpreter's exit.
LEAVE_S = 3.0
NOT_STOPPED = 1


class Deadline:
    """Starts at the first call of `begin`; safe to call from a signal handler."""

    def __init__(self) -> None:
        self._deadlines: queue.SimpleQueue[tuple[float, float, int]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="laneway deadline", daemon=True).start()

    def begin(self, grace_s: float) -> None:
        """Start the deadline of a worker that should stop; a later call can only shorten it."""
        self._put(grace_s + CHILDREN_S, grace_s + EXIT_S, NOT_STOPPED)

    def leave(self, code: int) -> None:
        """Exit soon with this code: the worker has stopped."""
        self._put(0.0, LEAVE_S, code)

    def _put(self, children_s: float, exit_s: float, code: int) -> None:
        now = time.monotonic()
        self._deadlines.put((now + children_s, now + exit_s, code))

    def _run(self) -> None:
        children_at, exit_at, code = self._deadlines.get()
        while True:
            now = time.monotonic()
            if now >= children_at:
                children_at = math.inf
                end_processes()
            if now >= exit_at:
                self._exit(code)
            try:
                new = self._deadlines.get(timeout=max(0.0, min(children_at, exit_at) - now))
            except queue.Empty:
                continue
            # Further signals shorten the deadline, and never extend it.
            children_at, exit_at = min(children_at, new[0]), min(exit_at, new[1])
            code = new[2]

    def _exit(self, code: int) -> None:
        if code:
            text = (
                "laneway: the worker has not stopped in time and exits now;"
                " its remaining jobs run again when their leases lapse\n"
            )
            with contextlib.suppress(OSError):
                os.write(2, text.encode())
        os._exit(code)


def end_processes() -> None:
    """Kill multiprocessing children of handlers: the interpreter would wait for them."""
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is not None:
        with contextlib.suppress(Exception):
            for process in multiprocessing.active_children():
                process.kill()
