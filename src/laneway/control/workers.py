"""The overview: lanes and their slots, which job holds which slot, who is there, who leads.

And what people do with one worker.
"""

from __future__ import annotations

import logging
from uuid import UUID

from laneway.control import lanes, notifications
from laneway.control.audit import audited
from laneway.domain.overview import OldSnapshot, Overview, WorkerRow
from laneway.domain.verb_rules import check_words
from laneway.errors import NotFound, Refused
from laneway.store import health
from laneway.store import lanes as lane_store
from laneway.store import workers as worker_store
from laneway.store.database import Database, Runner

log = logging.getLogger("laneway.control")


async def overview(db: Database, *, active_limit: int = 1000) -> Overview:
    """Lanes, active jobs (longest first within a lane), workers seen within the hour."""
    return Overview(
        await db.run(lane_store.read_gate()),
        await lanes.inspect(db),
        await db.run(lane_store.active(active_limit)),
        await db.run(worker_store.listing()),
    )


async def oldest_transaction(db: Database) -> OldSnapshot | None:
    """The transaction of somebody else that has pinned dead rows for longest."""
    return await db.run(health.oldest_snapshot())


async def get(db: Runner, worker_id: UUID) -> WorkerRow:
    """One worker, also one that has ended."""
    found = await db.run(worker_store.listing(worker_id))
    if not found:
        raise NotFound(f"no worker {worker_id}")
    return found[0]


async def drain(db: Database, worker_id: UUID, *, by: str) -> WorkerRow:
    """The worker claims nothing more as soon as it learns of it; what it runs finishes.

    It learns of it at once by a notification, else when it next says that it lives; a claim under
    way meanwhile stands. It stays drained until it is resumed, or its process ends.
    """
    return await _set_drained(db, worker_id, by, drained=True)


async def resume(db: Database, worker_id: UUID, *, by: str) -> WorkerRow:
    """The worker claims again."""
    return await _set_drained(db, worker_id, by, drained=False)


async def _set_drained(db: Database, worker_id: UUID, by: str, *, drained: bool) -> WorkerRow:
    check_words(by, None)
    verb = "drained" if drained else "resumed"
    async with audited(db, by, f"worker.{verb}", "worker", str(worker_id)) as deed:
        await deed.run(worker_store.lock(worker_id))
        before = await get(deed, worker_id)
        if not await deed.run(worker_store.drain(worker_id, by, drained=drained)):
            last = "was last seen" if before.stopped_at is None else "ended"
            at = (before.stopped_at or before.seen_at).isoformat(timespec="seconds")
            raise Refused(f"worker {worker_id} is gone: it {last} at {at}")
        after = await get(deed, worker_id)
        deed.before, deed.after = _drained(before), _drained(after)
    log.info("worker %s: %s by %s", before.name, verb, by)
    await notifications.tell_of_drain(db, worker_id)
    return after


def _drained(worker: WorkerRow) -> dict[str, object]:
    asked = worker.drain_requested_at
    return {
        "worker": worker.name,
        "drain_requested_at": asked.isoformat() if asked else None,
        "drain_requested_by": worker.drain_requested_by,
    }
