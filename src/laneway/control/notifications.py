"""Notifications to workers and waiters, which would otherwise learn of a change by polling."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from laneway.errors import LanewayError
from laneway.observability.safe_logger import SafeLogger
from laneway.store import notify
from laneway.store.database import Database

log = SafeLogger("laneway.control")

EVERY_TYPE = "wake *"


async def _notify(db: Database, message: str) -> None:
    # The change is committed and polling finds it: a lost notification must not fail the verb.
    try:
        await db.run(notify.wake(message, alone=not db.is_joined))
    except LanewayError as error:
        log.debug("notification %r was not sent: %s", message, error)


async def wake(db: Database, job_types: Iterable[str] | None) -> None:
    """Wake workers for jobs of these types; None: of any type."""
    named = set(job_types) if job_types is not None else None
    await _notify(db, EVERY_TYPE if named is None else notify.wake_message(named))


async def wake_schedulers(db: Database) -> None:
    """Wake schedulers for a planned or requested run; changes of schedules do so by a trigger."""
    await _notify(db, "schedules")


async def notify_cancel(db: Database, worker_id: UUID) -> None:
    """Notify a worker that a job of it is to stop."""
    await _notify(db, f"cancel {worker_id}")


async def notify_drain(db: Database, worker_id: UUID) -> None:
    """Notify a worker that it was drained or resumed."""
    await _notify(db, f"drain {worker_id}")
