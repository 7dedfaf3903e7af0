"""Limits that remote attempts hold for a call, given back for them after the longest hold."""

from __future__ import annotations

import asyncio
import logging
from typing import ClassVar, Final

from laneway.engine.process.throttled_warnings import ThrottledWarnings
from laneway.engine.service import Service
from laneway.store import call_limits
from laneway.store.database import Database

log = logging.getLogger("laneway")

# How often to look for holds that a server granted which is gone.
LOOK_S: Final = 15.0
# The soonest look after one that found a job which somebody else writes about.
RETRY_S: Final = 1.0


class RemoteLimitHolds(Service):
    """Ends holds that are due, whichever server granted them.

    A worker that heartbeats but never releases a limit would keep it from all others.
    """

    name: ClassVar[str] = "limit holds"

    def __init__(self, database: Database, complaints: ThrottledWarnings, longest_s: float) -> None:
        super().__init__(complaints)
        self._database = database
        self.longest_s = longest_s
        self._alarm: asyncio.TimerHandle | None = None

    def granted(self) -> None:
        """Look again when this hold is due; an alarm that is set comes sooner."""
        if self._alarm is None and self.longest_s < LOOK_S:
            loop = asyncio.get_running_loop()
            self._alarm = loop.call_later(self.longest_s, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self.wake()

    async def run_once(self) -> float | None:
        while True:
            ended = await self._database.run(call_limits.end_holds())
            if ended.names is None:
                break
            log.warning(
                "job %s held %s for longer than remote_limit_hold allows: given back for it",
                ended.job_id, ", ".join(ended.names),
            )  # fmt: skip
        return LOOK_S if ended.next_s is None else min(LOOK_S, max(RETRY_S, ended.next_s))

    async def cancel(self) -> None:
        await super().cancel()
        if self._alarm is not None:
            self._alarm.cancel()
