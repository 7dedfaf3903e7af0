"""Keeps leases alive from a process of its own, so that no handler can stop it: not by blocking
the event loop, not by holding the GIL. This is the worker's side; heartbeat_child.py is the other.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import struct
import sys
from array import array
from collections.abc import Callable, Iterable
from typing import ClassVar, cast

from laneway.config import Settings
from laneway.domain.claim import Claim
from laneway.engine.complaints import Complaints
from laneway.engine.service import Service

log = logging.getLogger("laneway")

HEAD = struct.Struct("<cId")
HOLD, FORGET, BEAT = b"+", b"-", b"!"


def message(kind: bytes, claims: Iterable[tuple[int, int]] = (), lease_s: float = 0.0) -> bytes:
    """One message to the child: what, how many, the lease, then pairs of seq and attempt."""
    numbers = array("q", (number for claim in claims for number in claim))
    return HEAD.pack(kind, len(numbers) // 2, lease_s) + numbers.tobytes()


class Heartbeat(Service):
    """Tells the child what to renew and hands on what it learns; starts it again if it dies."""

    name: ClassVar[str] = "heartbeat"

    def __init__(
        self,
        dsn: str,
        settings: Settings,
        complaints: Complaints,
        on_answer: Callable[[int, int, str], None],
    ) -> None:
        super().__init__(complaints)
        self._dsn = dsn
        self._settings = settings
        self._on_answer = on_answer
        self._held: dict[tuple[int, int], float] = {}
        self._process: asyncio.subprocess.Process | None = None

    def hold(self, claims: list[Claim], lease_s: float) -> None:
        """From now on renew these, before anybody runs them."""
        pairs = [(c.seq, c.attempt) for c in claims]
        for pair in pairs:
            self._held[pair] = lease_s
        self._send(message(HOLD, pairs, lease_s))

    def forget(self, claims: Iterable[Claim]) -> None:
        pairs = [(c.seq, c.attempt) for c in claims]
        for pair in pairs:
            self._held.pop(pair, None)
        self._send(message(FORGET, pairs))

    def beat(self) -> None:
        """Renew all now: somebody may have asked for a cancellation."""
        self._send(message(BEAT))

    def _send(self, data: bytes) -> None:
        process = self._process
        if process is not None and process.stdin is not None and not process.stdin.is_closing():
            process.stdin.write(data)

    async def run_once(self) -> float | None:
        """Runs one child until it ends; a child that ends by itself is replaced."""
        self._process = process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "laneway.engine.heartbeat_child",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            # Ctrl-C in a terminal is for the worker: leases are kept while it drains.
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )
        try:
            self._greet()
            async for line in cast(asyncio.StreamReader, process.stdout):
                kind, seq, attempt = json.loads(line)
                if kind == "trouble":
                    self._complaints.tell("heartbeat", seq)
                else:
                    self._on_answer(seq, attempt, kind)
            return 0.5
        finally:
            self._process = None
            if process.stdin is not None:
                process.stdin.close()
            await process.wait()

    def _greet(self) -> None:
        """The connection goes through the pipe: others can read a command line."""
        config = {
            "dsn": self._dsn,
            "fraction": self._settings.heartbeat_fraction,
            "pooler": self._settings.pooler,
            "connect_timeout": self._settings.connect_timeout,
        }
        self._send(json.dumps(config).encode() + b"\n")
        for pair, lease_s in self._held.items():
            self._send(message(HOLD, [pair], lease_s))

    async def stop(self) -> None:
        """The child ends when its input does."""
        self._is_stopping = True
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        await super().stop()
