"""Tells workers and waiters at once what they would otherwise find out at their next look."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from uuid import UUID

from laneway.errors import LanewayError
from laneway.store import notify
from laneway.store.database import Database

log = logging.getLogger("laneway.control")

EVERY_TYPE = "wake *"


async def _tell(db: Database, message: str) -> None:
    # The change is committed and polling finds it: a lost signal must not fail the verb.
    try:
        await db.run(notify.wake(message, alone=not db.is_joined))
    except LanewayError as error:
        log.debug("not told (%s): %s", message, error)


async def wake(db: Database, job_types: Iterable[str] | None) -> None:
    """Work of these types can be claimed now; None: of any type."""
    named = set(job_types) if job_types is not None else None
    await _tell(db, EVERY_TYPE if named is None else notify.wake_message(named))


async def tell_schedulers(db: Database) -> None:
    """A schedule was planned, or asked to run if its check holds; a change of one tells itself."""
    await _tell(db, "schedules")


async def ask_to_stop(db: Database, worker_id: UUID) -> None:
    """A job of this worker was asked to stop."""
    await _tell(db, f"cancel {worker_id}")


async def tell_of_drain(db: Database, worker_id: UUID) -> None:
    """This worker was told to drain, or to go on."""
    await _tell(db, f"drain {worker_id}")
