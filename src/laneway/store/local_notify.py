"""Rings in this process when one of its own statements changed jobs.

So streams of a server hear at once of what its own worker and client do, also where notifications
do not reach it. Who waits for the bell may live in another thread than who rings it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

# Those that are a transaction by themselves, wherever they are run often.
CHANGES: Final = frozenset(
    {
        "jobs/submit_job", "leases/bury_worker", "leases/claim_jobs", "leases/claim_with_origins",
        "leases/reclaim_leases", "leases/report_progress", "leases/settle_jobs",
        "remote/claim_jobs",
        "retention/expire_approvals", "retention/expire_overaged", "schedules/fire_slots",
    }
)  # fmt: skip

_waiting: dict[object, Callable[[], None]] = {}


def wait(who: object, call: Callable[[], None]) -> None:
    """Calls back at every change, from whatever thread makes it, until `leave`."""
    _waiting[who] = call


def leave(who: object) -> None:
    _waiting.pop(who, None)


def ring(statement: str | None = None) -> None:
    """Says that a statement, or a transaction of several, was run; free where nobody waits."""
    if _waiting and (statement is None or statement in CHANGES):
        for call in tuple(_waiting.values()):
            call()
