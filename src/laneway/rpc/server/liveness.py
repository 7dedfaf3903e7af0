"""Whether a worker has let a lease lapse without a call: then it is sent nothing."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from typing import Final

from laneway.domain.claim import Claim

# A process that was stopped has lost its stream by then, because it answers no ping. A process
# that lives may have no call to make.
SHORTEST_S: Final = 20.0
# gRPC also answers pings in a process whose event loop hangs. The silence doubles each time that
# jobs lapse at a worker whose calls used to come to this server.
LONGEST_S: Final = 640.0


class Liveness:
    """Keeps a worker that hangs from getting its lapsed jobs again, each time at a charge.

    Each lease counts by itself: a worker that renewed one and stopped lets another lapse first.
    """

    def __init__(self) -> None:
        # The length of each lease that the worker holds, and when it ends.
        self._held: dict[Claim, tuple[float, float]] = {}
        # When the first lease ended that the worker let lapse since its last call.
        self._lapsed_at = math.inf
        # When the first of all these leases ends; earlier than that while it is outdated.
        self._due_at = math.inf
        self._is_outdated = False
        # The worker's last call, here or at another server. It has just opened its stream.
        self._heard_at = time.monotonic()
        self._lasts_s = SHORTEST_S
        # Otherwise all its calls may go to another server.
        self._has_called = False

    @property
    def is_on(self) -> bool:
        now = time.monotonic()
        return self._first_due(now) < now < self._due_at + self._lasts_s

    def hold(self, claims: Iterable[Claim], lease_s: float, begun: float) -> None:
        """Note leases that the worker got, or last renewed, at that time."""
        now = time.monotonic()
        if self._first_due(now) + self._lasts_s <= now:
            if self._has_called:
                self._lasts_s = min(LONGEST_S, 2 * self._lasts_s)
            self._held = {one: held for one, held in self._held.items() if held[1] > now}
            self._lapsed_at = math.inf
            self._find_due()
        due_at = begun + lease_s
        self._held.update((claim, (lease_s, due_at)) for claim in claims)
        if due_at > self._heard_at:
            self._due_at = min(self._due_at, due_at)

    def heard(self) -> bool:
        """Note a call of the worker; return whether it ended the silence."""
        was_on = self.is_on
        self._has_called, self._lasts_s = True, SHORTEST_S
        self._note_call(time.monotonic())
        return was_on

    def renewed(self, claims: Iterable[Claim], asked_at: float) -> None:
        """Note leases that a call of the worker to this server renewed."""
        for claim in claims:
            if claim in self._held:
                lease_s, _ = self._held[claim]
                self._renew(claim, lease_s, asked_at + lease_s)

    def renewed_elsewhere(self, ends: Mapping[Claim, float]) -> bool:
        """Note when renewed leases end in the database; return whether that ended the silence.

        A lease that lasts proves no call after another has lapsed: its renewal may be older.
        """
        was_on = self.is_on
        for claim, ends_at in ends.items():
            if claim in self._held:
                lease_s, _ = self._held[claim]
                self._renew(claim, lease_s, ends_at)
                self._note_call(ends_at - lease_s)
        has_ended = was_on and not self.is_on
        if has_ended:
            self._lasts_s = SHORTEST_S
        return has_ended

    def ended(self, claim: Claim) -> None:
        """Note that the worker no longer holds the lease; a lapse is not a call of the worker."""
        _, due_at = self._held.pop(claim, (0.0, -math.inf))
        if self._heard_at < due_at <= time.monotonic():
            self._lapsed_at = min(self._lapsed_at, due_at)
        self._is_outdated = True

    def _renew(self, claim: Claim, lease_s: float, due_at: float) -> None:
        due_at = max(due_at, self._held[claim][1])
        self._held[claim] = lease_s, due_at
        self._is_outdated = True
        if due_at > self._heard_at:
            # It may not have counted: it ended before the last call.
            self._due_at = min(self._due_at, due_at)

    def _note_call(self, called_at: float) -> None:
        if called_at <= self._heard_at:
            return
        self._heard_at = called_at
        if self._lapsed_at <= called_at:
            self._lapsed_at = math.inf
        self._is_outdated = True

    def _first_due(self, now: float) -> float:
        if self._is_outdated and self._due_at < now:
            self._find_due()
        return self._due_at

    def _find_due(self) -> None:
        dues = (due_at for _, due_at in self._held.values() if due_at > self._heard_at)
        self._due_at = min(self._lapsed_at, min(dues, default=math.inf))
        self._is_outdated = False
