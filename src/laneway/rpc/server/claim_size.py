"""How many jobs of a lane one claim may bring, so that few bytes of them are held at once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from laneway.engine.claim.capacity import MOST
from laneway.store.leases import Assignment

# Of a lane of which nothing is known yet.
FIRST: Final = 32
# Payloads and checkpoints that one claim is to bring, about.
CLAIM_BYTES: Final = 4 << 20
# What was learned so long ago is taken for unknown.
OLD_S: Final = 60.0


class ClaimSize:
    """Learned from the claims of all streams: twice as many while they are small.

    How large jobs are is known once they are claimed. So a claim may bring too much when large jobs
    follow on many small ones; the next one does not.
    """

    def __init__(self) -> None:
        self._most = FIRST
        self._learned = time.monotonic()

    @property
    def most(self) -> int:
        is_old = time.monotonic() - self._learned > OLD_S
        return min(FIRST, self._most) if is_old else self._most

    def learn(self, brought: Sequence[Assignment]) -> None:
        count = len(brought)
        if not count:
            return
        size = sum(len(one.payload) + len(one.checkpoint or "") for one in brought)
        fitting = CLAIM_BYTES * count // max(size, 1)
        self._most = max(1, min(MOST, fitting, max(self.most, 2 * count)))
        self._learned = time.monotonic()

    def shrink(self) -> None:
        """A claim failed, perhaps because all of it is more than a database can tell at once."""
        self._most = max(1, min(FIRST, self.most // 2))
        self._learned = time.monotonic()
