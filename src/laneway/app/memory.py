"""Returns unused memory of this process to the system."""

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


def return_large_blocks() -> None:
    """Makes glibc return large blocks to the system as soon as they are free.

    By default it keeps freed blocks of up to 32 MiB per thread after the first large body. A few
    hostile requests would then hold hundreds of megabytes.
    """
    if sys.platform != "linux":
        return
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, 256 * _KIB)
        libc.mallopt(_M_TRIM_THRESHOLD, 1024 * _KIB)
        libc.mallopt(_M_ARENA_MAX, 2)
