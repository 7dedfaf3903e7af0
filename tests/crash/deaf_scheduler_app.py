"""The application in a worker that does not look at schedules when it leads, or leads again."""

from __future__ import annotations

from laneway.engine.leader.scheduler import Scheduler
from laneway.engine.leader.watchdog import Watchdog
from tests.crash.policy_app import lw

__all__ = ["lw"]


def sleep_on(self: Watchdog, call: object) -> None:
    """Forgets whom to call when it is elected."""


Watchdog.on_elected = property(lambda self: lambda: None, sleep_on)  # type: ignore[assignment]
Scheduler.longest_backoff_s = 30.0
