"""Delivers to webhooks in a server that runs no worker of an application."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import ClassVar

from laneway.config.settings import Settings
from laneway.engine.registry import Registry
from laneway.engine.service import Service
from laneway.engine.worker import Worker
from laneway.observability.log_throttle import LogThrottle
from laneway.store import lanes
from laneway.store.database import Database

# How soon the first webhook is noticed.
LOOK_S = 5.0


class DeliveryWorker(Worker):
    """A worker without an application: it only delivers to webhooks, and never leads."""

    leads: ClassVar[bool] = False

    def __init__(self, dsn: str, settings: Settings) -> None:
        name = f"{socket.gethostname()}:{os.getpid()} webhooks"
        # Lanes of the settings belong to the application.
        own = settings.model_copy(update={"lanes": ()})
        super().__init__(dsn, own, Registry(), name=name, transport="database")

    def _log_start(self) -> None:
        """Do nothing: it has no handlers to list."""


class WebhookService(Service):
    """Starts a DeliveryWorker once there is a webhook."""

    name: ClassVar[str] = "webhooks"

    def __init__(self, dsn: str, settings: Settings, database: Database) -> None:
        super().__init__(LogThrottle())
        self._dsn = dsn
        self._settings = settings
        self._database = database
        self.worker: DeliveryWorker | None = None

    async def run_once(self) -> float | None:
        if self._settings.webhooks == "off":
            return None
        state = await self._database.run(lanes.read())
        if not state.has_webhooks:
            return LOOK_S
        worker = DeliveryWorker(self._dsn, self._settings)
        await worker.start()
        self.worker = worker
        # It is needed from now on.
        return None

    async def close(self, grace_s: float, hurry: asyncio.Event | None = None) -> None:
        """Let deliveries finish within the grace, and release the rest."""
        await self.cancel()
        if self.worker is not None:
            await self.worker.stop(grace_s, hurry)
            self.worker = None
