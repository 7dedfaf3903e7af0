"""The worker's side of the heartbeat; heartbeat_child.py is the other side.

A separate process renews the leases, so that a handler cannot stop renewals by blocking the event
loop or holding the GIL.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from laneway import forks
from laneway.config.settings import Settings
from laneway.domain.claim import Claim
from laneway.engine.lease.heartbeat_wire import BEAT, FORGET, HOLD, QUIT, TICK, Pair, pack
from laneway.engine.process.spawned import Spawned, socket_pair
from laneway.engine.service import Service
from laneway.observability.log_throttle import LogThrottle
from laneway.observability.safe_logger import SafeLogger
from laneway.store.database import connection_options

log = SafeLogger("laneway")

RESTART_S = 0.1
# The worker claims nothing until a child is ready. A child not ready by then is replaced.
READY_S = 20.0
LONGEST_TICK_S = 0.5
# Without an answer for SILENT_S the worker stops claiming. After half of the shortest lease, within
# the bounds of FROZEN_S, it kills and replaces the child. The lower bound is for busy machines.
SILENT_S = 1.5
FROZEN_S = (2.0, 5.0)
QUIT_S = 2.0


def database_renewal(dsn: str, settings: Settings) -> dict[str, Any]:
    """The settings with which the child renews leases in a database."""
    return {
        "dsn": dsn,
        "options": {
            **connection_options(dsn, settings, "heartbeat"),
            # Detect a dead peer while there is still time to reconnect and renew.
            "tcp_user_timeout": 5_000,
        },
    }


class Heartbeat(Service):
    """Sends claims to the child and passes its answers on; restarts the child if it dies."""

    name: ClassVar[str] = "heartbeat"
    child: ClassVar[str] = "laneway.engine.lease.heartbeat_child"

    def __init__(
        self,
        renewal: Mapping[str, Any],
        settings: Settings,
        warnings: LogThrottle,
        on_answer: Callable[[int, int, str], None],
    ) -> None:
        super().__init__(warnings)
        self._renewal = renewal
        self._settings = settings
        self._on_answer = on_answer
        self._held: dict[Pair, float] = {}
        self._process: Spawned | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._down_since: float | None = None
        self._tick_s = min(LONGEST_TICK_S, settings.loop_timeout / 4)
        self._unanswered = 0
        self._is_up = False
        self._gets_through = True
        # True until the first child is ready or is given up.
        self._is_starting = True
        self.on_frozen: Callable[[], None] = lambda: None

    @property
    def pid(self) -> int | None:
        """The process id of the child, if one runs."""
        return self._process.pid if self._process is not None else None

    @property
    def held(self) -> int:
        """The number of leases being renewed."""
        return len(self._held)

    @property
    def is_ready(self) -> bool:
        """Whether leases claimed now would be renewed in time."""
        return self.is_answering and self._gets_through

    @property
    def problem(self) -> str:
        """The reason why it is not ready."""
        return "the worker is starting" if self._is_starting else "heartbeats do not get through"

    @property
    def is_answering(self) -> bool:
        """Whether the child is alive and answers ticks."""
        return self._is_up and self._silent_s <= SILENT_S

    @property
    def _silent_s(self) -> float:
        # Counted in ticks: while a handler blocks the loop, no answer can be read.
        return self._unanswered * self._tick_s

    def hold(self, claims: list[Claim], lease_s: float, age_s: float = 0.0) -> None:
        """Renew these from now on; `age_s` of the lease has already passed."""
        pairs = [(c.seq, c.attempt) for c in claims]
        self._held.update(dict.fromkeys(pairs, lease_s))
        self._send(self._pack(pairs, lease_s, age_s))

    def forget(self, claims: Iterable[Claim]) -> None:
        pairs = [(c.seq, c.attempt) for c in claims]
        for pair in pairs:
            self._held.pop(pair, None)
        self._send(pack(FORGET, pairs))

    def beat(self) -> None:
        """Renew all leases now, to learn of cancellation requests."""
        self._send(pack(BEAT))

    def _pack(self, pairs: list[Pair], lease_s: float, age_s: float = 0.0) -> bytes:
        return pack(HOLD, pairs, lease_s, age_s)

    def _drop(self, pair: Pair) -> None:
        self._held.pop(pair, None)

    def _send(self, data: bytes) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(data)

    async def run_once(self) -> float | None:
        """Run one child until it ends; the next round replaces it."""
        self._give_up_overdue()
        async with socket_pair() as (reader, writer, ours, theirs):
            process = self._spawn(theirs)
        self._process, self._writer = process, writer
        kept = forks.Fds(ours.fileno())
        loop = asyncio.get_running_loop()
        ticking = loop.create_task(self._tick(process), name="laneway tick")
        awaiting = loop.call_later(READY_S, self._give_up_unready, process)
        try:
            self._send_config()
            if self._is_stopping:
                self._quit()
            with contextlib.suppress(ConnectionError):
                async for line in reader:
                    self._handle(*json.loads(line))
        finally:
            ticking.cancel()
            awaiting.cancel()
            self._process = self._writer = None
            self._is_up = False
            if self._down_since is None:
                self._down_since = time.monotonic()
            kept.let_go()
            writer.transport.abort()
            code = await _ended(process)
        if not self._is_stopping:
            self._warnings.warn("heartbeat", f"its process ended ({code})")
        return RESTART_S

    def _spawn(self, theirs: socket.socket) -> Spawned:
        return Spawned(
            [sys.executable, "-m", self.child],
            stdin=theirs,
            stdout=theirs,
            # Keep Ctrl-C from the child: it renews leases while the worker drains.
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )

    def _give_up_unready(self, process: Spawned) -> None:
        if not self._is_up:
            self._is_starting = False
            self._warnings.warn("heartbeat", f"its process is not ready after {READY_S:g} s")
            process.kill()

    async def _tick(self, process: Spawned) -> None:
        self._unanswered = 0
        while True:
            if self._is_up and self._silent_s > self._kill_after_s():
                self._warnings.warn(
                    "heartbeat", f"its process has not answered for {self._silent_s:g} s: killed"
                )
                process.kill()
                self.on_frozen()
                return
            self._unanswered += 1
            self._send(pack(TICK))
            await asyncio.sleep(self._tick_s)

    def _kill_after_s(self) -> float:
        shortest = min(self._held.values(), default=float("inf"))
        least, most = FROZEN_S
        return max(least, min(most, shortest / 2))

    def _handle(self, kind: str, seq: int, attempt: int) -> None:
        match kind:
            case "ready":
                self._is_starting = False
                self._is_up = self._gets_through = True
                self._unanswered = 0
                self._down_since = None
                self._warnings.resolved("heartbeat")
            case "alive":
                self._unanswered = 0
                self._gets_through = bool(seq)
            case "problem":
                self._gets_through = False
                self._warnings.warn("heartbeat", seq)
            case "through":
                self._gets_through = True
                self._warnings.resolved("heartbeat")
            case _:
                if kind != "cancel_requested":
                    self._drop((seq, attempt))
                self._on_answer(seq, attempt, kind)

    def _give_up_overdue(self) -> None:
        """Give up leases that ran out by the local clock while no child could be started."""
        if self._down_since is None:
            return
        gone_s = time.monotonic() - self._down_since
        # The child may have died just before a renewal was due.
        left = 1 - self._settings.heartbeat_fraction
        for pair in [pair for pair, lease_s in self._held.items() if gone_s > lease_s * left]:
            self._drop(pair)
            self._on_answer(*pair, "lost")

    def _send_config(self) -> None:
        """Send the DSN through the pipe: other users can read a command line."""
        config = {
            **self._renewal,
            "worker": os.getpid(),
            "fraction": self._settings.heartbeat_fraction,
            "silence_s": self._settings.loop_timeout,
        }
        self._send(json.dumps(config).encode() + b"\n")
        for lease_s in set(self._held.values()):
            pairs = [pair for pair, held_s in self._held.items() if held_s == lease_s]
            self._send(self._pack(pairs, lease_s))
        if self._held:
            self.beat()

    def _quit(self) -> None:
        self._send(pack(QUIT))
        if self._writer is not None:
            self._writer.close()

    async def stop(self) -> None:
        """End the child; kill it if it does not end when asked."""
        self._is_stopping = True
        process = self._process
        self._quit()
        killing = None
        if process is not None:
            killing = asyncio.get_running_loop().call_later(QUIT_S, process.kill)
        await super().stop()
        if killing is not None:
            killing.cancel()


async def _ended(process: Spawned) -> int:
    try:
        async with asyncio.timeout(QUIT_S):
            return await process.wait()
    except TimeoutError:
        process.kill()
        return await process.wait()
