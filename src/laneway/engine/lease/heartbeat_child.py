"""The heartbeat process: reads claims from its input, renews them, reports those not renewed.

Five threads read the input, renew, watch for lost leases, write reports and watch the worker.

The process ends with the worker; then the leases lapse and the watchdog reclaims the jobs. The end
of its input is not enough to notice that: processes forked by a handler may hold it open.

A lease not renewed in time is lost by the local monotonic clock, even while a renewal hangs and
whatever the database answers later. A handler may block the worker for a while. But nothing is
renewed for a worker that is stopped, or silent for longer than its `loop_timeout`.
"""

from __future__ import annotations

import json
import os
import queue
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

from laneway.engine.lease.heartbeat_wire import BEAT, FORGET, HOLD, NAMED, QUIT, TICK, Pair, receive
from laneway.errors import LanewayError
from laneway.store.leases import WriteResult, heartbeat

CHUNK = 1000
BUSY_S = 0.1
STILL_OURS_S = 1.0
FROZEN = frozenset("TtZXx")
AGAIN_S = 0.2
BROKEN, HUNG = 1, 3
SHORTEST_S = 0.25
# While a renewal takes longer than this, the worker should not claim.
SLOW_S = 3.0
PROBE_S = 2.0
# Longer than the timeouts of statements and connection attempts: such a renewal hangs.
HANGS_S = 60.0
ALIVE_S = 0.2
# The driver is loaded by then, so that few renewals wait for it.
LOAD_S = 1.0

# Renews pairs (of these job ids, if any) within that many seconds; returns those not plainly
# renewed.
Renew: TypeAlias = Callable[[list[Pair], list[bytes], float], list[WriteResult]]


class HeldLease(NamedTuple):
    """A lease with the times when it is due and lost, and its length."""

    due_at: float
    lost_at: float
    lease_s: float
    job_id: bytes = b""


class ReportWriter:
    """Sends reports to the worker from its own thread, so that callers never block."""

    def __init__(self) -> None:
        self._reports: queue.SimpleQueue[list[object]] = queue.SimpleQueue()

    def report(self, kind: str, seq: object = 0, attempt: int = 0) -> None:
        self._reports.put([kind, seq, attempt])

    def run(self) -> None:
        while True:
            sys.stdout.write(json.dumps(self._reports.get()) + "\n")
            if self._reports.empty():
                sys.stdout.flush()

    def finish(self, within_s: float) -> None:
        """Wait until all reports are sent, at most `within_s`."""
        deadline = time.monotonic() + within_s
        while not self._reports.empty() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.05)


class LeaseRenewer:
    """Holds the leases, renews those that are due and gives up those that are lost."""

    def __init__(
        self,
        renew: Renew,
        fraction: float,
        writer: ReportWriter,
        silence_s: float = float("inf"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._renew_leases = renew
        self._clock = clock
        self._fraction = fraction
        self._writer = writer
        self._silence_s = silence_s
        self._last_tick = self._clock()
        self._held: dict[Pair, HeldLease] = {}
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._wakes_at = float("inf")
        self._asked: float | None = None
        self._is_well = True

    # Messages of the worker -------------------------------------------------------------------

    def worker_ticked(self) -> None:
        """Note that the worker's event loop is running."""
        self._last_tick = self._clock()

    def hold(
        self,
        pairs: list[Pair],
        lease_s: float,
        age_s: float = 0.0,
        job_ids: Sequence[bytes] = (),
    ) -> None:
        began = self._clock() - age_s
        held = HeldLease(began + lease_s * self._fraction, began + lease_s, lease_s)
        with self._lock:
            if job_ids:
                for pair, job_id in zip(pairs, job_ids, strict=True):
                    self._held[pair] = held._replace(job_id=job_id)
            else:
                self._held.update(dict.fromkeys(pairs, held))
            if held.due_at < self._wakes_at:
                self._changed.notify_all()

    def forget(self, pairs: list[Pair]) -> None:
        with self._lock:
            for pair in pairs:
                self._held.pop(pair, None)

    def beat_now(self) -> None:
        with self._lock:
            for pair, held in self._held.items():
                self._held[pair] = held._replace(due_at=0.0)
            self._changed.notify_all()

    # Renewing ---------------------------------------------------------------------------------

    @property
    def gets_through(self) -> bool:
        """Whether recent renewals were answered."""
        asked = self._asked
        return self._is_well and (asked is None or self._clock() - asked < SLOW_S)

    def run(self) -> None:
        while True:
            due = self._wait_for_due()
            if not due:
                self._probe()
            self.renew(due)

    def due(self) -> list[Pair]:
        """The leases to renew now, including those due soon."""
        with self._lock:
            return self._due()

    def _due(self) -> list[Pair]:
        now = self._clock()
        return [
            pair
            for pair, h in self._held.items()
            if h.due_at <= now + h.lease_s * self._fraction / 4
        ]

    def renew(self, pairs: list[Pair]) -> None:
        """Renew these, and report those that are fenced or have a cancellation request."""
        for start in range(0, len(pairs), CHUNK):
            self._renew(pairs[start : start + CHUNK])

    def _wait_for_due(self) -> list[Pair]:
        """Sleep until a lease is due, or until a retry after a failure.

        While renewals fail the worker claims nothing, so it may be that nothing becomes due.
        """
        again_at = float("inf") if self._is_well else self._clock() + AGAIN_S
        with self._lock:
            while True:
                soonest = min((h.due_at for h in self._held.values()), default=float("inf"))
                soonest = min(soonest, again_at)
                wait_s = soonest - self._clock()
                if wait_s <= 0:
                    break
                self._wakes_at = soonest
                self._changed.wait(min(wait_s, 3600))
            self._wakes_at = 0.0
            return self._due()

    def _probe(self) -> None:
        self._asked = self._clock()
        try:
            self._renew_leases([], [], PROBE_S)
        except LanewayError:
            return
        finally:
            self._asked = None
        self._recovered()

    def _recovered(self) -> None:
        if not self._is_well:
            self._is_well = True
            self._writer.report("through")

    def _renew(self, pairs: list[Pair]) -> None:
        if self._clock() - self._last_tick > self._silence_s or is_frozen(os.getppid()):
            self._put_off(pairs, AGAIN_S)
            return
        with self._lock:
            pairs = [pair for pair in pairs if pair in self._held]
            job_ids = [self._held[pair].job_id for pair in pairs]
            lost_at = min((self._held[pair].lost_at for pair in pairs), default=0.0)
        if not pairs:
            return
        self._asked = asked = self._clock()
        try:
            # Half of the time left, so that there is time for a retry.
            answers = self._renew_leases(pairs, job_ids, max(SHORTEST_S, (lost_at - asked) / 2))
        except LanewayError as error:
            self._is_well = False
            self._writer.report("problem", str(error))
            self._put_off(pairs, AGAIN_S)
            return
        finally:
            self._asked = None
        self._recovered()
        odd = {(a.seq, a.attempt): a.answer for a in answers}
        with self._lock:
            for pair in pairs:
                held = self._held.get(pair)
                if held is None:
                    continue
                if odd.get(pair) == "fenced":
                    del self._held[pair]
                elif odd.get(pair) == "busy":
                    # The lease is still held: a locked row cannot be reclaimed.
                    lost_at = max(held.lost_at, asked + STILL_OURS_S)
                    self._held[pair] = held._replace(due_at=asked + BUSY_S, lost_at=lost_at)
                else:
                    due_at = asked + held.lease_s * self._fraction
                    lost_at = asked + held.lease_s
                    self._held[pair] = held._replace(due_at=due_at, lost_at=lost_at)
        for pair, answer in odd.items():
            if answer != "busy":
                self._writer.report(answer, *pair)

    def _put_off(self, pairs: list[Pair], wait_s: float) -> None:
        """Make these due again after a pause; they stay held until they are lost."""
        due_at = self._clock() + wait_s
        with self._lock:
            for pair in pairs:
                if pair in self._held:
                    self._held[pair] = self._held[pair]._replace(due_at=due_at)

    # Losing -----------------------------------------------------------------------------------

    def watch(self) -> None:
        """Report lost leases in time, even while the renewing thread is blocked."""
        while True:
            with self._lock:
                first = min((h.lost_at for h in self._held.values()), default=float("inf"))
            # Leases last 2 s or more, so a check per half second notices a new one in time.
            time.sleep(min(0.5, max(0.01, first - self._clock())))
            self.give_up_lost()

    def give_up_lost(self) -> None:
        """Give up leases that were not renewed in time, and report them."""
        now = self._clock()
        with self._lock:
            lost = {pair: h.lease_s for pair, h in self._held.items() if h.lost_at <= now}
            for pair in lost:
                del self._held[pair]
        for pair in lost:
            self._writer.report("lost", *pair)
        asked = self._asked
        waited_s = 0.0 if asked is None else now - asked
        if waited_s > min(HANGS_S, min(lost.values(), default=float("inf")) / 2):
            # The connection hangs: exit, so that the next process opens a new one.
            self._writer.finish(1.0)
            os._exit(HUNG)


def is_frozen(pid: int) -> bool:
    """Whether a process is stopped or dead; False where /proc does not exist."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] in FROZEN
    except (OSError, IndexError):
        return False


def database_renewer(config: dict[str, Any]) -> Renew:
    """Make a function that renews leases in the database."""

    @cache
    def connection() -> Any:
        # The driver is most of what this process loads: a worker that ends soon never needs it.
        from laneway.store.sync_connection import SyncConnection

        return SyncConnection(config["dsn"], config["options"])

    def renew(pairs: list[Pair], job_ids: list[bytes], within_s: float) -> list[WriteResult]:
        statement = heartbeat([p[0] for p in pairs], [p[1] for p in pairs])
        answers: list[WriteResult] = connection().run(statement, within_s)
        return answers

    loading = threading.Timer(LOAD_S, lambda: import_module("laneway.store.sync_connection"))
    loading.daemon = True
    loading.start()
    return renew


def watch_worker(pid: int) -> None:
    """End this process with the worker, even if forks keep the worker's pipes open."""
    try:
        watched = os.pidfd_open(pid)
    except (AttributeError, OSError):
        watched = None
    # If the worker died before, the pid may belong to another process now.
    if watched is not None and os.getppid() == pid:
        poll = select.poll()
        poll.register(watched, select.POLLIN)
        poll.poll()
    while os.getppid() == pid:
        time.sleep(ALIVE_S)
    os._exit(0)


def _exit_on_error(work: Callable[[], None]) -> Callable[[], None]:
    """Wrap a thread's work so that an exception ends the whole process."""

    def run() -> None:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(BROKEN)

    return run


def serve(make: Callable[[dict[str, Any]], Renew]) -> None:
    """Run until the worker ends or sends QUIT; `make` gets the configuration sent first."""
    # Only the worker ends this process, not a signal to its group.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    stream = sys.stdin.buffer
    config: dict[str, Any] = json.loads(stream.readline())
    writer = ReportWriter()
    renewer = LeaseRenewer(make(config), config["fraction"], writer, config["silence_s"])
    worker: int = config["worker"]
    for work in (writer.run, renewer.run, renewer.watch, lambda: watch_worker(worker)):
        threading.Thread(target=_exit_on_error(work), daemon=True).start()
    writer.report("ready")
    while (message := receive(stream)) is not None:
        kind, pairs, lease_s, age_s, job_ids = message
        renewer.worker_ticked()
        if kind in (HOLD, NAMED):
            renewer.hold(pairs, lease_s, age_s, job_ids)
        elif kind == FORGET:
            renewer.forget(pairs)
        elif kind == BEAT:
            renewer.beat_now()
        elif kind == TICK:
            writer.report("alive", renewer.gets_through)
        elif kind == QUIT:
            break
    # Exit at once: a renewal may hang on a dead server, and there is nothing to clean up.
    os._exit(0)


if __name__ == "__main__":
    serve(database_renewer)
