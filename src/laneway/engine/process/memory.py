"""The memory that a process uses."""

from __future__ import annotations

import os
from pathlib import Path


def resident_bytes(pid: int | None = None) -> int | None:
    """The resident set size of a process, by default of this one; None where it is not known."""
    statm = Path(f"/proc/{pid or 'self'}/statm")
    try:
        return int(statm.read_text("ascii").split()[1]) * os.sysconf("SC_PAGESIZE")
    except (OSError, ValueError, IndexError):
        return None
