"""Supervises N worker processes: restarts those that die and kills those that hang.

The supervisor runs no user code. It notices the exit of a child at once, so it releases the child's
jobs without waiting for their leases. Only the culprit is charged: the handler that held the event
loop, or the only one that had begun. Otherwise all that had begun are suspects.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from uuid import UUID

from laneway.config.settings import Settings
from laneway.engine.process.deadline import EXIT_S
from laneway.engine.process.lifecycle import HURRY, TO_STOP
from laneway.engine.process.loop_marker import SIZE, LoopMarker
from laneway.errors import LanewayError
from laneway.observability.safe_logger import SafeLogger
from laneway.store.database import connection_options
from laneway.store.leases import fail_worker
from laneway.store.sync_connection import SyncConnection

log = SafeLogger("laneway")

# A child that ends sooner than this is restarted with backoff.
YOUNG_S = 5.0
LONGEST_PAUSE_S = 30.0
# A stopping child ends by itself within its grace and EXIT_S, unless its interpreter is stuck.
KILL_S = EXIT_S + 5.0
# Exit codes of a refused child: wrong usage, a missing token or right, a refused login, or a schema
# that this code cannot use. Children wait for a database or server that is away, and do not exit.
# If the first children are refused, the supervisor was started wrongly and exits. Once a child has
# worked, the cause is a change that can be undone, and the other children still work.
REFUSED = (2, 4, 5)


@dataclass(slots=True)
class WorkerChild:
    """One worker process and the supervisor's ends of the link to it."""

    process: subprocess.Popen[bytes]
    out: int
    link: int
    marker: LoopMarker
    # The lowest free number; the replacement of a child gets the same.
    number: int
    started: float = field(default_factory=time.monotonic)
    ticked: float = field(default_factory=time.monotonic)
    worker_id: UUID | None = None
    killed: bool = False
    signals_sent: int = 0
    # The time at which it is killed if it has not ended.
    kill_at: float = float("inf")


class Supervisor:
    """Keeps `count` children running until a signal stops it."""

    def __init__(
        self,
        command: list[str],
        count: int,
        dsn: str | None,
        settings: Settings,
        grace_s: float | None = None,
        name: str | None = None,
    ) -> None:
        """Without a `dsn`, jobs of a dead child run again only after their leases lapse."""
        self._grace_s = settings.shutdown_grace if grace_s is None else grace_s
        self._command = command
        self._name = name
        self._count = count
        self._settings = settings
        self._dsn = dsn
        self._connection = (
            None
            if dsn is None
            else SyncConnection(dsn, connection_options(dsn, settings, "supervisor"))
        )
        self._children: list[WorkerChild] = []
        self._signals = 0
        self._failures = 0
        self._resume_at = 0.0
        self._selector = selectors.DefaultSelector()
        self._exit_code = 0
        self._has_worked = False

    def run(self) -> int:
        """Run until a signal; return the exit code, 0 unless no child could start."""
        wake_r, wake_w = os.pipe()
        os.set_blocking(wake_w, False)
        signal.set_wakeup_fd(wake_w)
        before = {number: signal.getsignal(number) for number in TO_STOP}
        for number in TO_STOP:
            # nohup ignores SIGHUP.
            if number != signal.SIGHUP or before[number] != signal.SIG_IGN:
                signal.signal(number, self._on_signal)
        self._selector.register(wake_r, selectors.EVENT_READ, None)
        try:
            while not self._is_done():
                self._keep_count()
                for key, _ in self._selector.select(0.5):
                    if key.data is None:
                        os.read(wake_r, 512)
                    else:
                        self._read(key.data)
                self._look_after()
        finally:
            for child in list(self._children):
                child.process.kill()
                child.process.wait()
                self._remove(child)
            if self._connection is not None:
                self._connection.close()
            self._selector.close()
            for number in TO_STOP:
                # Another signal must not change the exit code; after an error the process goes on.
                signal.signal(number, signal.SIG_IGN if self._is_done() else before[number])
            signal.set_wakeup_fd(-1)
            os.close(wake_r)
            os.close(wake_w)
        return self._exit_code

    def _is_done(self) -> bool:
        return bool((self._signals or self._exit_code) and not self._children)

    def _on_signal(self, number: int, frame: object) -> None:
        self._signals += 1

    def _keep_count(self) -> None:
        if self._signals or self._exit_code or time.monotonic() < self._resume_at:
            return
        while len(self._children) < self._count:
            self._children.append(self._start())

    def _start(self) -> WorkerChild:
        out_r, out_w = os.pipe()
        watched_r, link_w = os.pipe()
        taken = {child.number for child in self._children}
        number = next(n for n in range(self._count) if n not in taken)
        with tempfile.TemporaryFile() as shared:
            shared.write(b"\0" * SIZE)
            shared.flush()
            mark = shared.fileno()
            process = subprocess.Popen(
                [*self._command, *self._named(number), *self._metrics(number)],
                pass_fds=(out_w, mark, watched_r),
                env={
                    **os.environ,
                    **({} if self._dsn is None else {"LANEWAY_DATABASE_URL": self._dsn}),
                    "LANEWAY_SUPERVISOR_FDS": f"{out_w},{mark},{watched_r},{number}",
                },
                # Ctrl-C reaches only the supervisor, which signals each child once.
                start_new_session=True,
            )
            marker = LoopMarker(mark)
        os.close(out_w)
        os.close(watched_r)
        os.set_blocking(out_r, False)
        child = WorkerChild(process, out_r, link_w, marker, number)
        self._selector.register(out_r, selectors.EVENT_READ, child)
        return child

    def _named(self, number: int) -> list[str]:
        """The name option of a child, which its replacement gets too."""
        if self._name is None:
            return []
        return [f"--name={self._name if self._count == 1 else f'{self._name}-{number + 1}'}"]

    def _metrics(self, number: int) -> list[str]:
        """The metrics port option: each child serves metrics on its own port."""
        port = self._settings.metrics_port
        return [f"--metrics-port={port and port + number}"] if port is not None else []

    def _read(self, child: WorkerChild) -> None:
        try:
            data = os.read(child.out, 4096)
        except BlockingIOError:
            return
        if not data:
            self._selector.unregister(child.out)
            return
        child.ticked = time.monotonic()
        for line in data.split(b"\n"):
            if line:
                child.worker_id = UUID(json.loads(line)["worker"])
                self._has_worked = True

    def _look_after(self) -> None:
        for child in list(self._children):
            silent = time.monotonic() - child.ticked
            if child.worker_id and silent > self._settings.loop_timeout and not child.killed:
                log.error(
                    "worker process %s has not answered for %.0f s: killed",
                    child.process.pid,
                    silent,
                )
                child.killed = True
                child.process.kill()
            if time.monotonic() > child.kill_at and not child.killed:
                log.error("worker process %s has not stopped in time: killed", child.process.pid)
                child.killed = True
                child.process.kill()
            if child.process.poll() is not None:
                self._ended(child)
            else:
                self._pass_on_signals(child)

    def _pass_on_signals(self, child: WorkerChild) -> None:
        """Signal the child here: a signal handler would miss a child that is being started."""
        while child.signals_sent < self._signals:
            is_first = child.signals_sent == 0
            child.process.send_signal(signal.SIGTERM if is_first else HURRY)
            # Further signals shorten the deadline, and never extend it.
            within_s = KILL_S + (self._grace_s if is_first else 0.0)
            child.kill_at = min(child.kill_at, time.monotonic() + within_s)
            child.signals_sent += 1

    def _ended(self, child: WorkerChild) -> None:
        code = child.process.returncode
        if code == 0 and not self._signals:
            log.info("worker process %s has stopped: replaced", child.process.pid)
        elif not self._signals:
            log.error("worker process %s %s", child.process.pid, _exit_text(code))
        self._remove(child)
        has_started = child.worker_id is not None
        is_refused = code in REFUSED and not has_started
        if is_refused and not self._has_worked:
            # A new child would be refused too.
            self._exit_code = code
            for other in self._children:
                other.process.terminate()
                other.kill_at = time.monotonic() + KILL_S + self._grace_s
        # A child that ran all jobs it may run is replaced at once, however young.
        is_spent = code == 0 and has_started
        is_young = time.monotonic() - child.started < YOUNG_S
        if (is_young or not has_started) and not child.killed and not is_spent:
            self._failures += 1
            pause = min(LONGEST_PAUSE_S, 0.5 * 2 ** min(self._failures, 10))
            self._resume_at = time.monotonic() + pause
            if is_refused and not (self._exit_code or self._signals):
                log.error(
                    "worker process %s was refused at start (exit code %s, its last message says"
                    " why): retry in %.0f s, %s of %s processes keep working",
                    child.process.pid,
                    code,
                    pause,
                    len(self._children),
                    self._count,
                )
        else:
            self._failures = 0

    def _remove(self, child: WorkerChild) -> None:
        """Release the jobs of a dead child and close the link to it."""
        self._children.remove(child)
        self._release_jobs(child)
        if child.out in self._selector.get_map():
            self._selector.unregister(child.out)
        os.close(child.out)
        os.close(child.link)
        child.marker.close()

    def _release_jobs(self, child: WorkerChild) -> None:
        culprit, began = child.marker.read() or None, child.marker.begun()
        # A handler may end its process with exit code 0.
        has_failed = child.process.returncode != 0 or began != []
        if child.worker_id is not None and has_failed and self._connection:
            message = f"worker lost: its process {_exit_text(child.process.returncode)}"
            if child.killed:
                message = "worker lost: the handler blocked the event loop"
            try:
                n = self._connection.run(
                    fail_worker(
                        child.worker_id,
                        message,
                        hung=child.killed,
                        culprit=culprit,
                        began=began,
                    )
                )
                log.info("released %s jobs of worker process %s", n, child.process.pid)
            except LanewayError as error:
                log.warning(
                    "could not release the jobs of worker process %s, their leases will lapse: %s",
                    child.process.pid,
                    error,
                )


def _exit_text(code: int) -> str:
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"ended with code {code}"
