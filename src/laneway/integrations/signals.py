"""Hears of the end when the process is told, not when its framework gets round to it."""

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
def on_signal(act: Callable[[], object]) -> Iterator[None]:
    """Does it in the event loop when a signal to stop comes; whoever heeded the signal still does.

    Only signals that somebody heeds, and only in the thread that Python gives them to.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    heeded = {number: heeds for number, heeds in before.items() if callable(heeds)}

    def heed(number: int, frame: FrameType | None) -> Any:
        loop.call_soon_threadsafe(act)
        return heeded[signal.Signals(number)](number, frame)

    for number in heeded:
        signal.signal(number, heed)
    try:
        yield
    finally:
        for number, heeds in heeded.items():
            if signal.getsignal(number) is heed:
                signal.signal(number, heeds)
