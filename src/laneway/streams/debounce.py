"""One call for many triggers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Debounce:
    """Calls a function once, `delay_s` after the first trigger; later triggers join that call."""

    def __init__(self, delay_s: float, call: Callable[[], object]) -> None:
        self._delay_s = delay_s
        self._call = call
        self._timer: asyncio.TimerHandle | None = None

    def trigger(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._delay_s, self._fire)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        self._timer = None
        self._call()
