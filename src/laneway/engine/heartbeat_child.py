"""The heartbeat process: reads claims from its input, renews them, tells what is not renewed.

One thread reads, one beats. It ends when its input ends, which it does when the worker dies: then
nobody renews and the watchdog takes the jobs back. A lease that could not be renewed in time is
lost by this process's own monotonic clock, whatever the database will say later.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from array import array
from typing import Any, BinaryIO

from laneway.config import Settings
from laneway.engine.heartbeat import BEAT, FORGET, HEAD, HOLD
from laneway.errors import LanewayError
from laneway.store.leases import heartbeat
from laneway.store.session import Session

CHUNK = 1000


class Beater:
    """The claims held, when each is due, and when each is lost."""

    def __init__(self, session: Session, fraction: float) -> None:
        self._session = session
        self._fraction = fraction
        self._held: dict[tuple[int, int], tuple[float, float, float]] = {}
        self._lock = threading.Lock()
        self._now = threading.Event()

    def hold(self, pairs: list[tuple[int, int]], lease_s: float) -> None:
        now = time.monotonic()
        entry = (now + lease_s * self._fraction, now + lease_s, lease_s)
        with self._lock:
            self._held.update(dict.fromkeys(pairs, entry))
            soonest = lease_s * self._fraction
        if soonest < self._tick:
            self._tick = soonest

    _tick = 2.0

    def forget(self, pairs: list[tuple[int, int]]) -> None:
        with self._lock:
            for pair in pairs:
                self._held.pop(pair, None)

    def beat_now(self) -> None:
        with self._lock:
            for pair, (_, lost_at, lease_s) in self._held.items():
                self._held[pair] = (0.0, lost_at, lease_s)
        self._now.set()

    def run(self) -> None:
        while True:
            self._now.wait(self._tick / 2)
            self._now.clear()
            self.beat()

    def beat(self) -> None:
        """Renews what is due; tells what is fenced, cancelled or lost."""
        now = time.monotonic()
        with self._lock:
            due = [
                pair
                for pair, (due_at, _, _) in self._held.items()
                if due_at <= now + self._tick / 4
            ]
        for start in range(0, len(due), CHUNK):
            self._renew(due[start : start + CHUNK])
        self._give_up()

    def _renew(self, pairs: list[tuple[int, int]]) -> None:
        asked = time.monotonic()
        try:
            answers = self._session.run(heartbeat([p[0] for p in pairs], [p[1] for p in pairs]))
        except LanewayError as error:
            tell("trouble", str(error), 0)
            return
        odd = {(a.seq, a.attempt): a.answer for a in answers}
        with self._lock:
            for pair in pairs:
                if pair not in self._held:
                    continue
                lease_s = self._held[pair][2]
                answer = odd.get(pair)
                if answer == "fenced":
                    del self._held[pair]
                elif answer == "busy":
                    # Somebody is writing this row; that is no renewal.
                    self._held[pair] = (asked + 0.1, *self._held[pair][1:])
                else:
                    self._held[pair] = (asked + lease_s * self._fraction, asked + lease_s, lease_s)
        for pair, answer in odd.items():
            if answer != "busy":
                tell(answer, *pair)

    def _give_up(self) -> None:
        now = time.monotonic()
        with self._lock:
            lost = [pair for pair, (_, lost_at, _) in self._held.items() if lost_at <= now]
            for pair in lost:
                del self._held[pair]
        for pair in lost:
            tell("lost", *pair)


def tell(kind: str, seq: object, attempt: int) -> None:
    sys.stdout.write(json.dumps([kind, seq, attempt]) + "\n")
    sys.stdout.flush()


def read(stream: BinaryIO, beater: Beater) -> None:
    """Takes messages until the worker closes the pipe."""
    while head := stream.read(HEAD.size):
        kind, count, lease_s = HEAD.unpack(head)
        numbers = array("q", stream.read(16 * count))
        pairs = list(zip(numbers[::2], numbers[1::2], strict=True))
        if kind == HOLD:
            beater.hold(pairs, lease_s)
        elif kind == FORGET:
            beater.forget(pairs)
        elif kind == BEAT:
            beater.beat_now()


def main() -> None:
    # The worker decides when this process ends, not whoever signals its group.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    stream = sys.stdin.buffer
    config: dict[str, Any] = json.loads(stream.readline())
    settings = Settings.load(pooler=config["pooler"], connect_timeout=config["connect_timeout"])
    beater = Beater(Session(config["dsn"], settings, "heartbeat"), config["fraction"])
    threading.Thread(target=beater.run, daemon=True).start()
    read(stream, beater)
    # A beat may hang on a dead server; there is nothing to tidy up.
    os._exit(0)


if __name__ == "__main__":
    main()
