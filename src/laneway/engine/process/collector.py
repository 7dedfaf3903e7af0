"""The garbage collector of a process that runs or dispatches many short jobs."""

from __future__ import annotations

import gc
from typing import Final

# Python's own value counts a few hundred objects, fewer than the jobs of one claim have: it looks
# at all young objects again and again while they are in use, for a tenth of the time of a job.
YOUNG: Final = 10_000
# Objects that outlive a collection are looked at as often as before, after some 70,000 new ones.
# Errors of handlers refer to themselves: 100,000 that wait would fill 75 MB more until then.
OLDER: Final = (1, 3)


def collect_less_often() -> None:
    """Let at least YOUNG objects be made between two collections, if there are collections."""
    young, *_ = gc.get_threshold()
    if 0 < young < YOUNG:
        gc.set_threshold(YOUNG, *OLDER)
