"""Whether a worker has let a lease lapse without a word: then it is sent nothing."""

from __future__ import annotations

import math
import time
from typing import Final

# Whoever was stopped has lost its stream by then, for it answers no ping; and whoever lives may
# have nothing to say.
SHORTEST_S: Final = 20.0
# But gRPC answers pings also in a process whose event loop hangs: each time that jobs have lapsed
# without a word of one who used to speak here, it lasts twice as long.
LONGEST_S: Final = 640.0


class Silence:
    """A worker that hangs would be sent its own jobs anew, each time at a charge."""

    def __init__(self) -> None:
        # The shortest lease in the worker's hands, and when it is over unless the worker is heard.
        self._shortest_s = math.inf
        self._due_at = math.inf
        self._lasts_s = SHORTEST_S
        # Else its calls may all go to another replica.
        self._has_spoken = False

    @property
    def is_on(self) -> bool:
        return self._due_at < time.monotonic() < self._due_at + self._lasts_s

    def hold(self, lease_s: float, begun: float) -> None:
        """The worker was given a lease at that time."""
        if self._due_at + self._lasts_s <= time.monotonic():
            if self._has_spoken:
                self._lasts_s = min(LONGEST_S, 2 * self._lasts_s)
            self._due_at = math.inf
        self._shortest_s = min(self._shortest_s, lease_s)
        self._due_at = min(self._due_at, begun + lease_s)

    def heard(self, in_hand: int) -> bool:
        """The worker has said something; whether that was news."""
        was_on = self.is_on
        self._has_spoken, self._lasts_s = True, SHORTEST_S
        if not in_hand:
            self._shortest_s = math.inf
        self._due_at = time.monotonic() + self._shortest_s
        return was_on

    def renewed(self, until: float) -> bool:
        """By way of another replica, until then; whether that ended the silence.

        Not a word by itself: a lease that is nearly over was renewed long ago.
        """
        was_on = self.is_on
        self._due_at = max(self._due_at, until)
        has_ended = was_on and not self.is_on
        if has_ended:
            self._lasts_s = SHORTEST_S
        return has_ended

    def emptied(self) -> None:
        """The worker has no job in hand; what has lapsed is no word of it."""
        if time.monotonic() < self._due_at:
            self._shortest_s = self._due_at = math.inf
