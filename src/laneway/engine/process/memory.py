"""How much memory this process holds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_STATM: Final = Path("/proc/self/statm")


def resident_bytes(statm: Path = _STATM) -> int | None:
    """The resident set of this process; None where the system does not say."""
    try:
        return int(statm.read_text("ascii").split()[1]) * os.sysconf("SC_PAGESIZE")
    except (OSError, ValueError, IndexError):
        return None
