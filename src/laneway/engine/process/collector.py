"""The garbage collector of a process that runs or dispatches many short jobs."""

from __future__ import annotations

import gc
from typing import Final

# Python's own value counts a few hundred objects, fewer than the jobs of one claim have: it looks
# at all young objects again and again while they are in use, for a tenth of the time of a job.
YOUNG: Final = 10_000


def collect_less_often() -> None:
    """Let at least YOUNG objects be made between two collections, if there are collections."""
    young, *older = gc.get_threshold()
    if 0 < young < YOUNG:
        gc.set_threshold(YOUNG, *older)
