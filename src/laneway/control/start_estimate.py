"""An estimate of when a waiting job starts."""

from __future__ import annotations

from typing import Final

from laneway.domain.job import Job
from laneway.domain.states import Status
from laneway.store.explain import Facts

# Reasons that end by an action, not by time: they cannot be estimated.
_NOT_ESTIMATED: Final = frozenset(
    {"paused", "lane_disabled", "no_slots", "no_worker", "type_not_handled", "lane_not_served",
     "workers_drained", "workers_stopping", "worker_silent", "approval_missing",
     "awaiting_approval", "pending", "limit_zero", "locked", "circle"}
)  # fmt: skip


def estimate_start(job: Job, found: Facts, codes: set[str]) -> float | None:
    """Seconds until it starts at the pace of the last minutes; None if unknown."""
    if job.status is not Status.APPROVED or codes & _NOT_ESTIMATED:
        return None
    least = max(found.due_in_s or 0.0, 0.0)
    if "key" in codes:
        return (
            None if found.run_s is None else round(least + found.run_s * (found.key_ahead + 1), 1)
        )
    if not codes & {"behind_others", "slots_full", "limit", "workers_full"}:
        return round(least, 1)
    if not found.per_s:
        return None
    return round(max(least, ((found.can_run or 0) + 1) / found.per_s), 1)
