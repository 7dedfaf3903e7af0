"""Releases limits that remote attempts hold for a call longer than allowed."""

from __future__ import annotations

import asyncio
from typing import ClassVar, Final

from laneway.engine.service import Service
from laneway.observability.log_throttle import LogThrottle
from laneway.observability.safe_logger import SafeLogger
from laneway.store import call_limits
from laneway.store.database import Database

log = SafeLogger("laneway")

# The interval of checks for holds that another server granted.
CHECK_S: Final = 15.0
# The shortest pause after a check that found a locked job.
RETRY_S: Final = 1.0


class RemoteLimitHolds(Service):
    """Ends overdue holds, whichever server granted them.

    Otherwise a worker that heartbeats but never releases a limit would block all others.
    """

    name: ClassVar[str] = "limit holds"

    def __init__(self, database: Database, warnings: LogThrottle, longest_s: float) -> None:
        super().__init__(warnings)
        self._database = database
        self.longest_s = longest_s
        self._alarm: asyncio.TimerHandle | None = None

    def granted(self) -> None:
        """Checks again when this hold is due; an alarm that is already set comes sooner."""
        if self._alarm is None and self.longest_s < CHECK_S:
            loop = asyncio.get_running_loop()
            self._alarm = loop.call_later(self.longest_s, self._on_alarm)

    def _on_alarm(self) -> None:
        self._alarm = None
        self.wake()

    async def run_once(self) -> float | None:
        while True:
            ended = await self._database.run(call_limits.end_holds())
            if ended.names is None:
                break
            log.warning(
                "job %s held %s for longer than remote_limit_hold allows: released",
                ended.job_id, ", ".join(ended.names),
            )  # fmt: skip
        return CHECK_S if ended.next_s is None else min(CHECK_S, max(RETRY_S, ended.next_s))

    async def cancel(self) -> None:
        await super().cancel()
        if self._alarm is not None:
            self._alarm.cancel()
