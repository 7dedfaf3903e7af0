"""Repair of a database whose tables were truncated or restored in part: `laneway db repair`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from laneway.control.audit import audited
from laneway.store import health
from laneway.store.database import Database

# Jobs that one statement reads.
SCAN: Final = 10_000
BATCH: Final = 1000
# Waiting jobs that one statement reads, each with its edges.
WAITS: Final = 1000


class Repaired(NamedTuple):
    """The number of repaired counters, of jobs ended as failed, and of repaired waiting jobs."""

    counters: int
    jobs: int
    waits: int


async def repair(
    db: Database, *, by: str, on_progress: Callable[[int], None] = lambda scanned: None
) -> Repaired:
    """Repair counters, end lost jobs as failed and correct stuck waiting jobs, in batches.

    `on_progress` is called with the number of jobs read so far.
    """
    # In a separate transaction: claims wait for counters that are being repaired.
    async with audited(db, by, "database.repaired", "database") as change:
        counters = await change.run(health.recount_usage())
        change.is_recorded, change.after = counters > 0, {"counters": counters}
    ended, scanned, after = 0, 0, 0
    while True:
        lost = await db.run(health.look_for_lost(after=after, scan=SCAN))
        for start in range(0, len(lost.numbers), BATCH):
            batch = lost.numbers[start : start + BATCH]
            async with audited(db, by, "database.repaired", "database") as change:
                found = await change.run(health.end_lost(batch))
                change.is_recorded, change.after = (
                    bool(found),
                    {"jobs": [str(one) for one in found]},
                )
            ended += len(found)
        if lost.next_after is None:
            # After the ends of lost jobs, which release others.
            return Repaired(counters, ended, await _repair_waits(db, by))
        after, scanned = lost.next_after, scanned + SCAN
        on_progress(scanned)


async def _repair_waits(db: Database, by: str) -> int:
    total, after = 0, 0
    while True:
        async with audited(db, by, "database.repaired", "database") as change:
            step = await change.run(health.mend_waits(after=after, look=WAITS))
            change.is_recorded, change.after = step.mended > 0, {"waits": step.mended}
        total += step.mended
        # The same place again: there is other work to do first, and the leader comes back to it.
        if step.after is None or step.after == after:
            return total
        after = step.after
