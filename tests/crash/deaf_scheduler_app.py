"""A mutant application: the scheduler does not start when its worker is elected."""

from __future__ import annotations

from laneway.engine.leader.scheduler import Scheduler
from laneway.engine.leader.watchdog import Watchdog
from tests.crash.policy_app import lw

__all__ = ["lw"]


def ignore_election(self: Watchdog, call: object) -> None:
    """Drop the callback that the watchdog calls on election."""


Watchdog.on_elected = property(lambda self: lambda: None, ignore_election)  # type: ignore[assignment]
Scheduler.longest_backoff_s = 30.0
