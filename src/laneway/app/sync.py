"""The application's verbs without an event loop: `lw.sync`."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from laneway.app.sync_resources import SyncJobs, SyncLanes, SyncLimits, SyncSchedules
from laneway.client.sync import SyncClient
from laneway.control.resources import Jobs, Lanes, Limits, Schedules

if TYPE_CHECKING:
    from laneway.app.laneway import Laneway


class SyncLaneway(SyncClient):
    """The verbs of an application as blocking calls, from any thread."""

    def __init__(self, app: Laneway) -> None:
        super().__init__(app)
        self._validator_of = app.validator_of

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
    def jobs(self) -> SyncJobs:
        return SyncJobs(self, lambda client: Jobs(lambda: client.database))
