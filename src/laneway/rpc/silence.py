"""Whether a worker has let a lease lapse without a word: then it is sent nothing."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import Final

from laneway.domain.claim import Claim

# Whoever was stopped has lost its stream by then, for it answers no ping; and whoever lives may
# have nothing to say.
SHORTEST_S: Final = 20.0
# But gRPC answers pings also in a process whose event loop hangs: each time that jobs have lapsed
# without a word of one who used to speak here, it lasts twice as long.
LONGEST_S: Final = 640.0


class Silence:
    """A worker that hangs would be sent its own jobs anew, each time at a charge.

    Each lease counts by itself: a worker that renewed one and stopped lets another lapse first.
    """

    def __init__(self) -> None:
        # By what is in the worker's hands: how long its lease is, and when it is over.
        self._held: dict[Claim, tuple[float, float]] = {}
        # When the first of them is over that was not before the worker's last word.
        self._due_at = math.inf
        # What was due then may have ended in time.
        self._is_outdated = False
        self._heard_at = -math.inf
        self._lasts_s = SHORTEST_S
        # Else its calls may all go to another replica.
        self._has_spoken = False

    @property
    def is_on(self) -> bool:
        now = time.monotonic()
        if self._is_outdated and self._due_at < now:
            self._find_due()
        return self._due_at < now < self._due_at + self._lasts_s

    def hold(self, claims: Iterable[Claim], lease_s: float, begun: float) -> None:
        """The worker was given these leases at that time."""
        now = time.monotonic()
        if self._due_at + self._lasts_s <= now:
            if self._has_spoken:
                self._lasts_s = min(LONGEST_S, 2 * self._lasts_s)
            self._held = {one: held for one, held in self._held.items() if held[1] > now}
            self._find_due()
        due_at = begun + lease_s
        self._held.update((claim, (lease_s, due_at)) for claim in claims)
        self._due_at = min(self._due_at, due_at)

    def heard(self) -> bool:
        """The worker has said something; whether that was news."""
        was_on = self.is_on
        self._has_spoken, self._lasts_s = True, SHORTEST_S
        self._heard_at = time.monotonic()
        if self._due_at <= self._heard_at:
            self._find_due()
        return was_on

    def renewed(self, claims: Iterable[Claim], asked_at: float) -> None:
        """The worker asked here to have these leases renewed, and they were."""
        for claim in claims:
            if claim in self._held:
                lease_s, _ = self._held[claim]
                self._held[claim] = lease_s, asked_at + lease_s
        if time.monotonic() < self._due_at:
            self._find_due()

    def renewed_elsewhere(self, until: float) -> bool:
        """By way of another replica, until then; whether that ended the silence.

        Not a word by itself: a lease that is nearly over was renewed long ago.
        """
        was_on = self.is_on
        for claim, (lease_s, due_at) in self._held.items():
            self._held[claim] = lease_s, max(due_at, until)
        self._due_at = max(self._due_at, until)
        has_ended = was_on and not self.is_on
        if has_ended:
            self._lasts_s = SHORTEST_S
        return has_ended

    def ended(self, claim: Claim) -> None:
        """The worker no longer has it in hand; that it has lapsed is no word of the worker."""
        self._held.pop(claim, None)
        if time.monotonic() < self._due_at:
            self._is_outdated = True

    def _find_due(self) -> None:
        dues = (due_at for _, due_at in self._held.values())
        self._due_at = min((one for one in dues if one > self._heard_at), default=math.inf)
        self._is_outdated = False
