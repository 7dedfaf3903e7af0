"""An estimate of when a waiting job starts."""

from __future__ import annotations

import heapq
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
    """Seconds until it starts, by recent run times; None if unknown."""
    if job.status is not Status.APPROVED or codes & _NOT_ESTIMATED:
        return None
    least = max(found.due_in_s or 0.0, 0.0)
    if "key" in codes:
        return (
            None if found.run_s is None else round(least + found.run_s * (found.key_ahead + 1), 1)
        )
    if not codes & {"behind_others", "slots_full", "limit", "workers_full"}:
        return round(least, 1)
    if "limit" not in codes and (free_in_s := _slot_free_in(found, codes)) is not None:
        return round(max(least, free_in_s), 1)
    if not found.per_s:
        return None
    return round(max(least, ((found.can_run or 0) + 1) / found.per_s), 1)


def _slot_free_in(found: Facts, codes: set[str]) -> float | None:
    """Seconds until a slot is free after the jobs ahead, by the run times of their types.

    The pace of the lane would be misleading: it counts times without work, and ends of jobs that
    are longer or shorter than those that wait.
    """
    lane_run_s = found.lane_run_s
    if lane_run_s is None:
        return None
    usual = found.type_run_s
    slots = sorted(_left_s(usual.get(one.job_type, lane_run_s), one.ran_s) for one in found.running)
    if found.max_slots is not None:
        # After slots were lowered, more jobs run than may: the first ends free no slot.
        slots = slots[max(len(slots) - found.max_slots, 0) :]
    if not codes & {"slots_full", "workers_full"}:
        slots = [0.0] * _free_slots(found, len(slots)) + slots
    if not slots:
        return None
    types = found.types_ahead
    total_s = sum(usual.get(name, lane_run_s) * jobs for name, jobs in types.items())
    each_s = total_s / sum(types.values()) if types else lane_run_s
    for _ in range(found.can_run or 0):
        heapq.heapreplace(slots, slots[0] + each_s)
    return slots[0]


def _free_slots(found: Facts, running: int) -> int:
    """Slots that a job of the lane could take now: of the lane and of its workers, at least one."""
    bounds = [] if found.max_slots is None else [found.max_slots - running]
    workers = [one for one in found.candidates if not one.is_stopping and not one.is_silent]
    if workers and all(one.free is not None for one in workers):
        # Reports are some seconds old: the lane may have taken more since.
        bounds += [
            sum(one.free or 0 for one in workers),
            sum(one.total or 0 for one in workers) - running,
        ]
    return max(min(bounds, default=1), 1)


def _left_s(usual_s: float, ran_s: float) -> float:
    """The rest of a run; for a job that runs longer than usual, one more usual run."""
    return usual_s - ran_s if ran_s < usual_s else usual_s
