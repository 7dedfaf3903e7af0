"""A background loop around `run_once`, with backoff, jitter and wake-ups."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import ClassVar

from laneway.errors import DatabaseUnavailable
from laneway.observability.log_throttle import LogThrottle
from laneway.observability.safe_logger import SafeLogger

log = SafeLogger("laneway")


class Service:
    """Calls `run_once` after the delay that it returns; tests call it directly."""

    name: ClassVar[str] = "service"
    longest_backoff_s: ClassVar[float] = 2.0

    def __init__(self, warnings: LogThrottle) -> None:
        self._warnings = warnings
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_stopping = False

    async def run_once(self) -> float | None:
        """Run one round; return the seconds until the next, or None to wait for a wake-up."""
        raise AssertionError("a Service defines run_once")

    def wake(self) -> None:
        """Request a round now."""
        self._wake.set()

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._run(), name=f"laneway {self.name}")

    async def stop(self) -> None:
        """Stop after the current round."""
        self._is_stopping = True
        self._wake.set()
        if self._task is not None:
            await self._task
            self._task = None

    async def cancel(self) -> None:
        """Stop now, in the middle of a round."""
        self._is_stopping = True
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def _run(self) -> None:
        failures = 0
        while self._should_run():
            self._wake.clear()
            try:
                delay = await self.run_once()
                if failures:
                    self._recovered()
                failures = 0
            except DatabaseUnavailable as error:
                failures += 1
                self._warnings.warn(self.name, error)
                delay = backoff_s(failures, self.longest_backoff_s)
            except Exception as error:
                failures += 1
                self._warnings.warn(self.name, f"{type(error).__name__}: {error}")
                log.debug("%s failed", self.name, exc_info=True)
                delay = backoff_s(failures, self.longest_backoff_s)
            if not self._should_run():
                return
            if failures:
                # Wake-ups must not turn an outage into a tight loop.
                await asyncio.sleep(delay or 0.1)
                continue
            if delay is not None and delay <= 0:
                await asyncio.sleep(0)
                continue
            with contextlib.suppress(TimeoutError):
                jittered = delay if delay is None else delay * random.uniform(0.9, 1.1)
                async with asyncio.timeout(jittered):
                    await self._wake.wait()

    def _recovered(self) -> None:
        """Log that a round succeeded after failures."""
        self._warnings.resolved(self.name)

    def _should_run(self) -> bool:
        return not self._is_stopping


def backoff_s(failures: int, longest_s: float) -> float:
    """The jittered pause after this many failures in a row."""
    return min(longest_s, 0.1 * 2.0 ** min(failures - 1, 10)) * random.uniform(0.5, 1.0)
