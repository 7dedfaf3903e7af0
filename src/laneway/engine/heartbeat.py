"""Keeps leases alive from a process of its own, so that no handler can stop it: not by blocking
the event loop, not by holding the GIL. This is the worker's side; heartbeat_child.py is the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, cast

from laneway.config import Settings
from laneway.domain.claim import Claim
from laneway.engine.complaints import Complaints
from laneway.engine.heartbeat_wire import BEAT, FORGET, HOLD, TICK, Pair, pack
from laneway.engine.service import Service
from laneway.store.database import connection_options

log = logging.getLogger("laneway")

RESTART_S = 0.1
# Until a child is ready the worker takes no job: one that hangs as it starts is replaced.
READY_S = 20.0
LONGEST_TICK_S = 5.0


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
    child: ClassVar[str] = "laneway.engine.heartbeat_child"

    def __init__(
        self,
        renewal: Mapping[str, Any],
        settings: Settings,
        complaints: Complaints,
        on_answer: Callable[[int, int, str], None],
    ) -> None:
        super().__init__(complaints)
        self._renewal = renewal
        self._settings = settings
        self._on_answer = on_answer
        self._held: dict[Pair, float] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._down_since: float | None = None
        # Whether what is claimed now would be renewed in time.
        self.is_ready = False

    @property
    def pid(self) -> int | None:
        """The child's process id while there is one."""
        return self._process.pid if self._process is not None else None

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
        process = self._process
        if process is not None and process.stdin is not None and not process.stdin.is_closing():
            process.stdin.write(data)

    async def run_once(self) -> float | None:
        """Runs one child until it ends; a child that ends by itself is replaced."""
        self._give_up_overdue()
        self._process = process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            self.child,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            # Ctrl-C in a terminal is for the worker: leases are kept while it drains.
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )
        stdin = cast(asyncio.StreamWriter, process.stdin)
        loop = asyncio.get_running_loop()
        ticking = loop.create_task(self._tick(), name="laneway tick")
        awaiting = loop.call_later(READY_S, self._give_up_unready, process)
        try:
            self._greet()
            if self._is_stopping:
                stdin.close()
            async for line in cast(asyncio.StreamReader, process.stdout):
                self._hear(*json.loads(line))
        finally:
            ticking.cancel()
            awaiting.cancel()
            self._process = None
            self.is_ready = False
            if self._down_since is None:
                self._down_since = time.monotonic()
            stdin.close()
            with contextlib.suppress(OSError):
                await stdin.wait_closed()
            await process.wait()
        if not self._is_stopping:
            self._complaints.tell("heartbeat", f"its process ended ({process.returncode})")
        return RESTART_S

    def _give_up_unready(self, process: asyncio.subprocess.Process) -> None:
        if not self.is_ready:
            self._complaints.tell("heartbeat", f"its process is not ready after {READY_S:g} s")
            with contextlib.suppress(ProcessLookupError):
                process.kill()

    async def _tick(self) -> None:
        interval_s = min(LONGEST_TICK_S, self._settings.loop_timeout / 4)
        while True:
            self._send(pack(TICK))
            await asyncio.sleep(interval_s)

    def _hear(self, kind: str, seq: int, attempt: int) -> None:
        match kind:
            case "ready":
                self.is_ready = True
                self._down_since = None
                self._complaints.over("heartbeat")
            case "trouble":
                self._complaints.tell("heartbeat", seq)
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
            "fraction": self._settings.heartbeat_fraction,
            "silence_s": self._settings.loop_timeout,
        }
        self._send(json.dumps(config).encode() + b"\n")
        for lease_s in set(self._held.values()):
            pairs = [pair for pair, held_s in self._held.items() if held_s == lease_s]
            self._send(self._pack(pairs, lease_s))
        if self._held:
            self.beat()

    async def stop(self) -> None:
        """The child ends when its input does."""
        self._is_stopping = True
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        await super().stop()
