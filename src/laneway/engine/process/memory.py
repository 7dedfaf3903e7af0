"""The memory that this process uses."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_STATM: Final = Path("/proc/self/statm")


def resident_bytes(statm: Path = _STATM) -> int | None:
    """The resident set size of this process; None where /proc does not exist."""
    try:
        return int(statm.read_text("ascii").split()[1]) * os.sysconf("SC_PAGESIZE")
    except (OSError, ValueError, IndexError):
        return None
