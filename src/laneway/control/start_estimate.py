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
    known = found.type_run_s
    if not known or not found.running:
        return None
    usual_s = sum(known.values()) / len(known)
    slots = [max(known.get(one.job_type, usual_s) - one.ran_s, 0.0) for one in found.running]
    if not codes & {"slots_full", "workers_full"}:
        slots += [0.0] * max((found.max_slots or 0) - len(slots), 0)
    ahead = found.can_run or 0
    types = found.types_ahead
    each_s = sum(known.get(one, usual_s) for one in types) / len(types) if types else usual_s
    heapq.heapify(slots)
    for _ in range(ahead):
        heapq.heapreplace(slots, slots[0] + each_s)
    return slots[0]
