"""Detects workers that let a lease lapse without a call; they get no more jobs."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from typing import Final

from laneway.domain.claim import Claim

# A stopped process has lost its stream by then, because it answers no ping. A live process may
# have no call to make.
SHORTEST_S: Final = 20.0
# gRPC also answers pings in a process whose event loop hangs. The silence doubles each time that
# jobs lapse at a worker whose calls used to come to this server.
LONGEST_S: Final = 640.0

Pair = tuple[int, int]


class Liveness:
    """Keeps a worker that hangs from getting its lapsed jobs again, each time at a charge.

    Each lease counts separately: a worker that renewed one and stopped lets another lapse first.
    """

    def __init__(self) -> None:
        # The length and end of each lease that the worker holds, by job number and attempt: the
        # hash of a whole claim takes longer.
        self._held: dict[Pair, tuple[float, float]] = {}
        # The end of the first lease that lapsed since the worker's last call.
        self._lapsed_at = math.inf
        # The first end of all these leases; too early while it is outdated.
        self._due_at = math.inf
        self._is_outdated = False
        # The worker's last call, here or at another server; opening the stream is one.
        self._called_at = time.monotonic()
        self._lasts_s = SHORTEST_S
        # Without a call here, all its calls may go to another server.
        self._has_called = False

    @property
    def is_silent(self) -> bool:
        now = time.monotonic()
        return self._first_due(now) < now < self._due_at + self._lasts_s

    def hold(self, claims: Iterable[Claim], lease_s: float, begun: float) -> None:
        """Notes leases that the worker got, or last renewed, at that time."""
        now = time.monotonic()
        if self._first_due(now) + self._lasts_s <= now:
            if self._has_called:
                self._lasts_s = min(LONGEST_S, 2 * self._lasts_s)
            self._held = {one: held for one, held in self._held.items() if held[1] > now}
            self._lapsed_at = math.inf
            self._find_due()
        due_at = begun + lease_s
        held = lease_s, due_at
        self._held.update(((one.seq, one.attempt), held) for one in claims)
        if due_at > self._called_at:
            self._due_at = min(self._due_at, due_at)

    def note_call(self) -> bool:
        """Notes a call of the worker; returns whether it ended the silence."""
        was_silent = self.is_silent
        self._has_called, self._lasts_s = True, SHORTEST_S
        self._called(time.monotonic())
        return was_silent

    def renewed(self, claims: Iterable[Claim], asked_at: float) -> None:
        """Notes leases that a call of the worker to this server renewed."""
        for claim in claims:
            pair = claim.seq, claim.attempt
            if pair in self._held:
                lease_s, _ = self._held[pair]
                self._renew(pair, lease_s, asked_at + lease_s)

    def renewed_elsewhere(self, ends: Mapping[Claim, float]) -> bool:
        """Notes the ends of renewed leases; returns whether that ended the silence.

        A live lease does not prove a call after another lapsed: its renewal may be older.
        """
        was_silent = self.is_silent
        for claim, ends_at in ends.items():
            pair = claim.seq, claim.attempt
            if pair in self._held:
                lease_s, _ = self._held[pair]
                self._renew(pair, lease_s, ends_at)
                self._called(ends_at - lease_s)
        has_ended = was_silent and not self.is_silent
        if has_ended:
            self._lasts_s = SHORTEST_S
        return has_ended

    def ended(self, *claims: Claim) -> None:
        """Notes that the worker no longer holds the leases; a lapse is not a call of the worker."""
        now = time.monotonic()
        for claim in claims:
            _, due_at = self._held.pop((claim.seq, claim.attempt), (0.0, -math.inf))
            if self._called_at < due_at <= now:
                self._lapsed_at = min(self._lapsed_at, due_at)
        self._is_outdated = True

    def _renew(self, pair: Pair, lease_s: float, due_at: float) -> None:
        due_at = max(due_at, self._held[pair][1])
        self._held[pair] = lease_s, due_at
        self._is_outdated = True
        if due_at > self._called_at:
            # It may not be counted yet: its old end was before the last call.
            self._due_at = min(self._due_at, due_at)

    def _called(self, called_at: float) -> None:
        if called_at <= self._called_at:
            return
        self._called_at = called_at
        if self._lapsed_at <= called_at:
            self._lapsed_at = math.inf
        self._is_outdated = True

    def _first_due(self, now: float) -> float:
        if self._is_outdated and self._due_at < now:
            self._find_due()
        return self._due_at

    def _find_due(self) -> None:
        dues = (due_at for _, due_at in self._held.values() if due_at > self._called_at)
        self._due_at = min(self._lapsed_at, min(dues, default=math.inf))
        self._is_outdated = False
