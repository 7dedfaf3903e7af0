"""Ends a worker process that was told to stop and does not, whatever its handlers do.

A handler may block the event loop, or leave behind what the interpreter waits for as it exits:
processes of multiprocessing, threads, hooks. A thread that was there before any of them counts the
time, first ends the processes, then this one.
"""

from __future__ import annotations

import contextlib
import math
import os
import queue
import sys
import threading
import time

# After the grace: until processes that handlers started are killed, and until the worker exits.
CHILDREN_S = 3.0
EXIT_S = 10.0
# Once the worker has stopped: for what the interpreter does at its exit.
LEAVE_S = 3.0
NOT_STOPPED = 1


class Deadline:
    """Counts from the first call of `begin`; safe to call from a signal handler."""

    def __init__(self) -> None:
        self._orders: queue.SimpleQueue[tuple[float, float, int]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="laneway deadline", daemon=True).start()

    def begin(self, grace_s: float) -> None:
        """The worker was told to stop, or to hurry."""
        self._order(grace_s + CHILDREN_S, grace_s + EXIT_S, NOT_STOPPED)

    def leave(self, code: int) -> None:
        """The worker has stopped: the process is to exit with this code."""
        self._order(0.0, LEAVE_S, code)

    def _order(self, children_s: float, exit_s: float, code: int) -> None:
        now = time.monotonic()
        self._orders.put((now + children_s, now + exit_s, code))

    def _run(self) -> None:
        children_at, exit_at, code = self._orders.get()
        while True:
            now = time.monotonic()
            if now >= children_at:
                children_at = math.inf
                end_processes()
            if now >= exit_at:
                self._exit(code)
            try:
                told = self._orders.get(timeout=max(0.0, min(children_at, exit_at) - now))
            except queue.Empty:
                continue
            # Further signals make it sooner, never later.
            children_at, exit_at = min(children_at, told[0]), min(exit_at, told[1])
            code = told[2]

    def _exit(self, code: int) -> None:
        if code:
            told = (
                "laneway: the worker has not stopped in time and exits now;"
                " jobs that it still holds come back when their leases lapse\n"
            )
            with contextlib.suppress(OSError):
                os.write(2, told.encode())
        os._exit(code)


def end_processes() -> None:
    """Kill what handlers started with multiprocessing: the interpreter would wait for it."""
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is not None:
        with contextlib.suppress(Exception):
            for process in multiprocessing.active_children():
                process.kill()
