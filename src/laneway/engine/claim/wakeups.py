"""Wake-ups by notification; polling finds the same jobs without them."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from laneway.config.settings import Settings
from laneway.engine.service import Service
from laneway.observability.log_throttle import LogThrottle
from laneway.store.notify import Listener


class Wakeups(Service):
    """Listens until the connection fails, then listens again and looks for missed work."""

    name: ClassVar[str] = "listener"

    def __init__(
        self,
        dsn: str,
        settings: Settings,
        warnings: LogThrottle,
        on_message: Callable[[str], None],
        on_ready: Callable[[], None],
    ) -> None:
        super().__init__(warnings)
        self._listener = Listener(dsn, settings, on_message)
        self._on_ready = on_ready

    @property
    def is_listening(self) -> bool:
        """Whether notifications arrive."""
        return self._listener.is_listening

    def _ready(self) -> None:
        self._warnings.resolved(self.name)
        self._on_ready()

    async def run_once(self) -> float | None:
        await self._listener.listen(self._ready)
        return 0

    async def stop(self) -> None:
        await self.cancel()
