"""Keeps leases alive from a process of its own, so that no handler can stop it: not by blocking
the event loop, not by holding the GIL. This is the worker's side; heartbeat_child.py is the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
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
from laneway.engine.process.throttled_warnings import ThrottledWarnings
from laneway.engine.service import Service
from laneway.store.database import connection_options

log = logging.getLogger("laneway")

RESTART_S = 0.1
# Until a child is ready the worker takes no job: one that hangs as it starts is replaced.
READY_S = 20.0
LONGEST_TICK_S = 0.5
# A child that has not answered for so long is not claimed for, and then killed and replaced: before
# half of the shortest lease is gone, but not sooner than a busy machine may take to answer.
UNHEARD_S = 1.5
FROZEN_S = (2.0, 5.0)
QUIT_S = 2.0


def renewed_in(dsn: str, settings: Settings) -> dict[str, Any]:
    """What the child needs to renew leases in a database."""
    return {
        "dsn": dsn,
        "options": {
            **connection_options(dsn, settings, "heartbeat"),
            # A dead peer must be noticed while there is still time to renew elsewhere.
            "tcp_user_timeout": 5_000,
        },
    }


class Heartbeat(Service):
    """Tells the child what to renew and hands on what it learns; starts it again if it dies."""

    name: ClassVar[str] = "heartbeat"
    child: ClassVar[str] = "laneway.engine.lease.heartbeat_child"

    def __init__(
        self,
        renewal: Mapping[str, Any],
        settings: Settings,
        warnings: ThrottledWarnings,
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
        # Until the first child was ready, or took too long.
        self._is_starting = True
        self.on_frozen: Callable[[], None] = lambda: None

    @property
    def pid(self) -> int | None:
        """The child's process id while there is one."""
        return self._process.pid if self._process is not None else None

    @property
    def held(self) -> int:
        """How many leases it renews."""
        return len(self._held)

    @property
    def is_ready(self) -> bool:
        """Whether what is claimed now would be renewed in time."""
        return self.is_answering and self._gets_through

    @property
    def trouble(self) -> str:
        """Why it is not ready."""
        return "the worker is starting" if self._is_starting else "heartbeats do not get through"

    @property
    def is_answering(self) -> bool:
        """Whether the child lives and listens."""
        return self._is_up and self._unheard_s <= UNHEARD_S

    @property
    def _unheard_s(self) -> float:
        # Counted in ticks: while a handler blocks the loop, no answer can be heard.
        return self._unanswered * self._tick_s

    def hold(self, claims: list[Claim], lease_s: float, age_s: float = 0.0) -> None:
        """From now on renew these, before anybody runs them; `age_s` of the lease is gone."""
        pairs = [(c.seq, c.attempt) for c in claims]
        self._held.update(dict.fromkeys(pairs, lease_s))
        self._send(self._pack(pairs, lease_s, age_s))

    def forget(self, claims: Iterable[Claim]) -> None:
        pairs = [(c.seq, c.attempt) for c in claims]
        for pair in pairs:
            self._held.pop(pair, None)
        self._send(pack(FORGET, pairs))

    def beat(self) -> None:
        """Renew all now: somebody may have asked for a cancellation."""
        self._send(pack(BEAT))

    def _pack(self, pairs: list[Pair], lease_s: float, age_s: float = 0.0) -> bytes:
        return pack(HOLD, pairs, lease_s, age_s)

    def _drop(self, pair: Pair) -> None:
        self._held.pop(pair, None)

    def _send(self, data: bytes) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(data)

    async def run_once(self) -> float | None:
        """Runs one child until it ends; a child that ends by itself is replaced."""
        self._give_up_overdue()
        async with socket_pair() as (reader, writer, ours, theirs):
            process = self._spawn(theirs)
        self._process, self._writer = process, writer
        kept = forks.Fds(ours.fileno())
        loop = asyncio.get_running_loop()
        ticking = loop.create_task(self._tick(process), name="laneway tick")
        awaiting = loop.call_later(READY_S, self._give_up_unready, process)
        try:
            self._greet()
            if self._is_stopping:
                self._quit()
            with contextlib.suppress(ConnectionError):
                async for line in reader:
                    self._hear(*json.loads(line))
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
            # Ctrl-C in a terminal is for the worker: leases are kept while it drains.
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
            if self._is_up and self._unheard_s > self._patience_s():
                self._warnings.warn(
                    "heartbeat", f"its process has not answered for {self._unheard_s:g} s: killed"
                )
                process.kill()
                self.on_frozen()
                return
            self._unanswered += 1
            self._send(pack(TICK))
            await asyncio.sleep(self._tick_s)

    def _patience_s(self) -> float:
        shortest = min(self._held.values(), default=float("inf"))
        least, most = FROZEN_S
        return max(least, min(most, shortest / 2))

    def _hear(self, kind: str, seq: int, attempt: int) -> None:
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
            case "trouble":
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
        """While no child can be started nobody renews: what is over by our clock is lost."""
        if self._down_since is None:
            return
        gone_s = time.monotonic() - self._down_since
        # The child may have died just before a renewal.
        left = 1 - self._settings.heartbeat_fraction
        for pair in [pair for pair, lease_s in self._held.items() if gone_s > lease_s * left]:
            self._drop(pair)
            self._on_answer(*pair, "lost")

    def _greet(self) -> None:
        """The connection goes through the pipe: others can read a command line."""
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
        """Ends the child, by force if it does not end when asked to."""
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
