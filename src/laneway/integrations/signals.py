"""Calls a function on a stop signal, before the framework begins its shutdown."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def on_signal(callback: Callable[[], object]) -> Iterator[None]:
    """Calls `callback` in the event loop on SIGTERM or SIGINT, then the previous handler.

    Signals without a Python handler are left alone. Works only in the main thread, where Python
    runs signal handlers; elsewhere it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    previous = {number: handler for number, handler in before.items() if callable(handler)}

    def handle(number: int, frame: FrameType | None) -> Any:
        loop.call_soon_threadsafe(callback)
        return previous[signal.Signals(number)](number, frame)

    for number in previous:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in previous.items():
            if signal.getsignal(number) is handle:
                signal.signal(number, handler)
