"""The application's verbs without an event loop: `lw.sync`."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property, partial
from typing import TYPE_CHECKING

from laneway.app.sync_resources import (
    SyncFlows,
    SyncJobs,
    SyncLanes,
    SyncLimits,
    SyncSchedules,
    SyncWebhooks,
)
from laneway.app.sync_worker import SyncWorker
from laneway.client.sync import SyncClient
from laneway.control.resources import Flows, Jobs, Lanes, Limits, Schedules, Webhooks

if TYPE_CHECKING:
    from laneway.app.laneway import Laneway


class SyncLaneway(SyncClient):
    """The verbs of an application as blocking calls, from any thread."""

    def __init__(self, app: Laneway) -> None:
        super().__init__(app)
        self._app = app
        self._validator_of = app.validator_of

    def worker(
        self,
        *,
        only_lanes: Collection[str] | None = None,
        name: str | None = None,
        app: str | None = None,
        max_jobs: int | None = None,
    ) -> SyncWorker:
        """A worker of this application in its own thread; the options are those of `lw.worker`.

        with lw.sync.worker(): ...
        """
        make = partial(
            self._app.worker, only_lanes=only_lanes, name=name, app=app, max_jobs=max_jobs
        )
        return SyncWorker(self._app, make)

    @cached_property
    def lanes(self) -> SyncLanes:
        """`lw.lanes` with blocking verbs."""
        return SyncLanes(self, lambda client: Lanes(lambda: client.database))

    @cached_property
    def limits(self) -> SyncLimits:
        return SyncLimits(self, lambda client: Limits(lambda: client.database))

    @cached_property
    def schedules(self) -> SyncSchedules:
        return SyncSchedules(
            self, lambda client: Schedules(lambda: client.database, self._validator_of)
        )

    @cached_property
    def webhooks(self) -> SyncWebhooks:
        return SyncWebhooks(self, lambda client: Webhooks(lambda: client.database))

    @cached_property
    def flows(self) -> SyncFlows:
        return SyncFlows(self, lambda client: Flows(lambda: client.database))

    @cached_property
    def jobs(self) -> SyncJobs:
        return SyncJobs(self, lambda client: Jobs(lambda: client.database))
