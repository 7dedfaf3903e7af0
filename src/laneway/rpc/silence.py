"""Whether a worker has let a lease lapse without a word: then it is sent nothing."""

from __future__ import annotations

import math
import time
from typing import Final

# Whoever is gone for so long has lost its stream, for it answers no ping.
LONGEST_S: Final = 20.0


class Silence:
    """A worker that hangs would be sent its own jobs anew, each time at a charge."""

    def __init__(self) -> None:
        # The shortest lease in the worker's hands, and when it is over unless the worker is heard.
        self._shortest_s = math.inf
        self._due_at = math.inf

    @property
    def is_on(self) -> bool:
        return self._due_at < time.monotonic() < self._due_at + LONGEST_S

    def hold(self, lease_s: float, begun: float) -> None:
        """The worker was given a lease at that time."""
        self._shortest_s = min(self._shortest_s, lease_s)
        self._due_at = min(self._due_at, begun + lease_s)

    def heard(self, in_hand: int) -> bool:
        """The worker has said something; whether that was news."""
        was_on = self.is_on
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
        return was_on and not self.is_on

    def emptied(self) -> None:
        """The worker has no job in hand."""
        if not self.is_on:
            self._shortest_s = self._due_at = math.inf
