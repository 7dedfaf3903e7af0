"""A mutant application: the scheduler keeps plans that it made while the clock was ahead."""

from __future__ import annotations

from laneway.engine.leader.scheduler import Scheduler
from tests.crash.policy_app import lw

__all__ = ["lw"]

Scheduler.elected = Scheduler.wake  # type: ignore[method-assign]
