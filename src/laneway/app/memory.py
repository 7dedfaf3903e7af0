"""Memory of this process that nobody uses any more, given back to the system."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from typing import Final

# From <malloc.h>.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_KIB: Final = 1024


def give_back_large_blocks() -> None:
    """Let glibc return large blocks to the system as soon as they are free.

    By itself it learns from the first large body to keep blocks of up to 32 MiB, once per thread:
    a few hostile requests would leave hundreds of megabytes behind.
    """
    if sys.platform != "linux":
        return
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, 256 * _KIB)
        libc.mallopt(_M_TRIM_THRESHOLD, 1024 * _KIB)
        libc.mallopt(_M_ARENA_MAX, 2)
