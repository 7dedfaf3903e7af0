"""Wait for an effect, with a deadline."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
PATIENCE_S = 60.0
_LOOK_S = 0.02


def until(look: Callable[[], T | None], within_s: float = PATIENCE_S) -> T:
    """Wait until `look` finds something, and return that."""
    deadline = time.monotonic() + within_s
    while not (found := look()):
        assert time.monotonic() < deadline, f"not within {within_s} s: {inspect.getsource(look)}"
        time.sleep(_LOOK_S)
    return found
