"""The check of `laneway doctor` on waiting jobs."""

from __future__ import annotations

from typing import Final

from laneway.control.health_check import HealthCheck, and_more, fail, ok, warn
from laneway.store import health, held_jobs
from laneway.store.database import Database

# Waiting jobs that `doctor` reads.
WAITS_SCANNED: Final = 5000
OLD_WAIT_DAYS: Final = 7


async def check_waits(db: Database) -> HealthCheck:
    """Every waiting job waits for something that can come."""
    name = "waits"
    found = await db.run(health.find_stuck_waits(look=WAITS_SCANNED))
    looked_at = "" if found.is_whole else f" of the first {WAITS_SCANNED:,}"
    if found.ids:
        text = f"{len(found.ids)} waiting jobs{looked_at} wait for nothing that will come"
        first = f"the first is {found.ids[0]}: tables were truncated or restored in part"
        return fail(name, f"{text}, {first}", "laneway db repair")
    old = await db.run(health.find_old_waits(look=WAITS_SCANNED, age_s=OLD_WAIT_DAYS * 24 * 3600.0))
    if old:
        text = f"job {old[0]} has waited for an event for over {OLD_WAIT_DAYS} days"
        return warn(
            name, f"{text}, without a timeout{and_more(old)}", f"laneway jobs explain {old[0]}"
        )
    held = await db.run(held_jobs.find_held(look=WAITS_SCANNED))
    if held.jobs:
        jobs = "1 job waits" if held.jobs == 1 else f"{held.jobs:,} jobs wait"
        text = f"{jobs}{looked_at} until a job that failed or was cancelled is retried"
        return warn(
            name,
            f"{text}; the first is {held.first}, after {held.parent}",
            f"laneway jobs retry {held.parent}",
        )
    return ok(name, f"every waiting job{looked_at} waits for something that can come")
