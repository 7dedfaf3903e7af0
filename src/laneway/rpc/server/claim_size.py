"""The number of jobs that one claim of a lane may return, to bound the bytes in memory."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from laneway.engine.claim.capacity import MAX_CLAIM
from laneway.store.leases import Assignment

# The size for a lane without recent claims.
FIRST: Final = 32
# The approximate bytes of payloads and checkpoints that one claim should return.
CLAIM_BYTES: Final = 4 << 20
# The age after which the measured size is not used any more.
OLD_S: Final = 60.0


class ClaimSize:
    """Measured from the claims of all streams; doubles while jobs are small.

    The size of jobs is known only after the claim. So a claim may return too many bytes when large
    jobs follow many small ones; the next claim does not.
    """

    def __init__(self) -> None:
        self._most = FIRST
        self._learned = time.monotonic()

    @property
    def most(self) -> int:
        is_old = time.monotonic() - self._learned > OLD_S
        return min(FIRST, self._most) if is_old else self._most

    def learn(self, claimed: Sequence[Assignment]) -> None:
        count = len(claimed)
        if not count:
            return
        size = sum(len(one.payload) + len(one.checkpoint or "") for one in claimed)
        fitting = CLAIM_BYTES * count // max(size, 1)
        self._most = max(1, min(MAX_CLAIM, fitting, max(self.most, 2 * count)))
        self._learned = time.monotonic()

    def shrink(self) -> None:
        """Halves the size after a failed claim, which may have been too large for the database."""
        self._most = max(1, min(FIRST, self.most // 2))
        self._learned = time.monotonic()
