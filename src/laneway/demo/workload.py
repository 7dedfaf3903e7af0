"""The many small jobs: a burst at the start, later a trickle."""

from __future__ import annotations

import asyncio
import itertools
import random

from laneway import Laneway
from laneway.demo.events import EventLog, JobStates

DOCUMENTS = 10
IMAGES = 36
TRICKLE_S = 1.0


async def submit_burst(lw: Laneway, event_log: EventLog, job_states: JobStates) -> None:
    """Submit more jobs than the lanes have slots, so that some wait."""
    event_log.record(
        f"{DOCUMENTS} documents for `interactive` (2 slots), {IMAGES} images for `default`"
    )
    job_states.expect(
        await lw.submit_many(
            ("ingestion", {"path": f"report-{n}.pdf", "pages": 3 + n % 4}) for n in range(DOCUMENTS)
        )
    )
    job_states.expect(
        await lw.submit_many(("thumbnail", {"image": f"photo-{n}.jpg"}) for n in range(IMAGES))
    )


async def trickle(lw: Laneway, event_log: EventLog, job_states: JobStates) -> None:
    """Submit a few jobs of every kind, until cancelled."""
    for n in itertools.count(1):
        await asyncio.sleep(TRICKLE_S)
        if n % 20 == 0:
            event_log.record("a new projection for `maintenance`")
            job_states.expect([await lw.submit("projection")])
        elif n % 10 == 0:
            event_log.record("a calendar to sync: it will fail twice")
            job_states.expect([await lw.submit("sync_calendar", {"account": f"account-{n}"})])
        elif n % 3 == 0:
            images = random.randint(1, 8)
            job_states.expect(
                await lw.submit_many(
                    ("thumbnail", {"image": f"photo-{n}-{i}.jpg"}) for i in range(images)
                )
            )
        else:
            job_states.expect(
                [await lw.submit("ingestion", {"path": f"book-{n}.pdf", "pages": 14})]
            )
