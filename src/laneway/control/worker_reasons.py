"""Reasons why no live worker can run a job now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from laneway.domain.explanation import Reason
from laneway.domain.overview import DEAD_S
from laneway.domain.webhook import DELIVERY_CURE, WEBHOOK_TYPE
from laneway.store.explain import Facts

# Holders, workers and jobs that a message names.
NAMED: Final = 5
_START_ONE: Final = "start one that has it with `laneway worker APP`"


def moment(at: datetime) -> str:
    """The time in the only form that the command line shows in local time."""
    return at.isoformat(timespec="seconds")


def listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")


def worker_reasons(found: Facts) -> list[Reason]:
    """The reasons by the facts; empty if a worker may take the job."""
    last = found.last_seen
    died = ""
    if last is not None and last.stopped_at is not None:
        died = f"; the last one, {last.name}, stopped at {moment(last.stopped_at)}"
    elif last is not None:
        died = f"; the last one, {last.name}, was last seen at {moment(last.seen_at)}"
    if not found.live:
        lane = f", so none serves the lane {found.lane}{died}" if last else ""
        return [
            Reason("no_worker", f"no worker is alive{lane}: start one with `laneway worker APP`")
        ]
    live = f"{found.live} live worker{'s' if found.live > 1 else ''}"
    if not found.knowing:
        lacking, cure = f"has a handler for {found.job_type}", _START_ONE
        if found.job_type == WEBHOOK_TYPE:
            lacking, cure = "delivers to webhooks", DELIVERY_CURE
        return [Reason("type_not_handled", f"none of {live} {lacking}{died}: {cure}")]
    if not found.serving:
        return [
            Reason(
                "lane_not_served",
                f"no live worker with a handler for {found.job_type} serves the lane "
                f"{found.lane}{died}: start one with `laneway worker APP --lanes {found.lane}`",
            )
        ]
    if found.drained == found.serving:
        return [
            Reason(
                "workers_drained",
                f"every worker that serves {found.job_type} is drained: the job starts once one is"
                " resumed with `laneway admin workers resume WORKER`",
            )
        ]
    return _unavailable(found)


def _unavailable(found: Facts) -> list[Reason]:
    """The reasons why no worker that could run it takes it now; empty if one may."""
    stopping = [worker.name for worker in found.candidates if worker.is_stopping]
    silent = [
        f"{worker.name} since {moment(worker.seen_at)}, {worker.unseen_s:.0f} s ago"
        for worker in found.candidates
        if worker.is_silent
    ]
    full = [
        f"{worker.name} ({worker.capacity}, since {moment(worker.full_since)})"
        for worker in found.candidates
        if worker.is_full and worker.full_since is not None
    ]
    if len(stopping) + len(silent) + len(full) < len(found.candidates):
        return []
    served = f"that serve {found.job_type} in the lane {found.lane}"
    reasons = []
    if silent:
        message = (
            f"workers {served} have not been seen: {listed(silent)}; "
            f"they count as dead after {DEAD_S:.0f} s; if they were killed, start another with"
            " `laneway worker APP`"
        )
        reasons.append(Reason("worker_silent", message))
    if stopping:
        message = f"workers {served} are stopping and take no more jobs: {listed(stopping)}"
        reasons.append(Reason("workers_stopping", message))
    if full:
        message = f"workers {served} have no room for another job: {listed(full)}"
        reasons.append(Reason("workers_full", message))
    return reasons
