"""The overview of lanes, slots, active jobs and workers; and verbs on one worker."""

from __future__ import annotations

from uuid import UUID

from laneway.control import lanes, notifications
from laneway.control.audit import audited
from laneway.domain.overview import OldSnapshot, Overview, WorkerRow
from laneway.domain.verb_rules import check_actor
from laneway.errors import NotFound, Refused
from laneway.observability.safe_logger import SafeLogger
from laneway.store import health
from laneway.store import lanes as lane_store
from laneway.store import workers as worker_store
from laneway.store.database import Database, Runner

log = SafeLogger("laneway.control")


async def overview(db: Database, *, active_limit: int = 1000) -> Overview:
    """Lanes, active jobs (longest first within a lane), workers seen within the hour."""
    return Overview(
        await db.run(lane_store.read_gate()),
        await lanes.inspect(db),
        await db.run(lane_store.active(active_limit)),
        await db.run(worker_store.listing()),
    )


async def oldest_transaction(db: Database) -> OldSnapshot | None:
    """The transaction of another program that has pinned dead rows the longest."""
    return await db.run(health.oldest_snapshot())


async def get(db: Runner, worker_id: UUID) -> WorkerRow:
    """One worker, even if it has ended."""
    found = await db.run(worker_store.listing(worker_id))
    if not found:
        raise NotFound(f"no worker {worker_id}")
    return found[0]


async def drain(db: Database, worker_id: UUID, *, by: str) -> WorkerRow:
    """Drain a worker: it finishes its jobs and claims no more.

    It learns of this by a notification, or else at its next report; a claim in progress meanwhile
    stands. It stays drained until it is resumed or its process ends.
    """
    return await _set_drained(db, worker_id, by, drained=True)


async def resume(db: Database, worker_id: UUID, *, by: str) -> WorkerRow:
    """Resume a worker: it claims again."""
    return await _set_drained(db, worker_id, by, drained=False)


async def _set_drained(db: Database, worker_id: UUID, by: str, *, drained: bool) -> WorkerRow:
    check_actor(by)
    verb = "drained" if drained else "resumed"
    async with audited(db, by, f"worker.{verb}", "worker", str(worker_id)) as change:
        await change.run(worker_store.lock(worker_id))
        before = await get(change, worker_id)
        if not await change.run(worker_store.drain(worker_id, by, drained=drained)):
            last = "was last seen" if before.stopped_at is None else "ended"
            at = (before.stopped_at or before.seen_at).isoformat(timespec="seconds")
            raise Refused(f"worker {worker_id} is gone: it {last} at {at}")
        after = await get(change, worker_id)
        change.before, change.after = _drained(before), _drained(after)
    log.info("worker %s: %s by %s", before.name, verb, by)
    await notifications.notify_drain(db, worker_id)
    return after


def _drained(worker: WorkerRow) -> dict[str, object]:
    asked = worker.drain_requested_at
    return {
        "worker": worker.name,
        "drain_requested_at": asked.isoformat() if asked else None,
        "drain_requested_by": worker.drain_requested_by,
    }
