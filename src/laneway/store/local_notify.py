"""Notifies subscribers in this process when one of its statements changed jobs.

The streams of a server see changes by its own worker and client at once, even where LISTEN does
not work. Subscribers are called in the thread that made the change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

# Frequent statements that run in a transaction of one statement.
CHANGES: Final = frozenset(
    {
        "jobs/submit_job", "leases/fail_worker", "leases/claim_jobs", "leases/claim_with_origins",
        "leases/reclaim_leases", "leases/report_progress", "leases/settle_jobs",
        "remote/claim_jobs",
        "retention/expire_approvals", "retention/expire_overaged", "schedules/fire_slots",
        "sent_events/send_events",
    }
)  # fmt: skip

_subscribers: dict[object, Callable[[], None]] = {}


def subscribe(subscriber: object, call: Callable[[], None]) -> None:
    """Calls `call` at every change, in the thread that makes it, until `unsubscribe`."""
    _subscribers[subscriber] = call


def unsubscribe(subscriber: object) -> None:
    _subscribers.pop(subscriber, None)


def publish(statement: str | None = None) -> None:
    """Notifies of a statement, or of a transaction of several; free without subscribers."""
    if _subscribers and (statement is None or statement in CHANGES):
        for call in tuple(_subscribers.values()):
            call()
