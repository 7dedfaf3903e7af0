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


async def submit_burst(lw: Laneway, chronicle: EventLog, tally: JobStates) -> None:
    """More than the lanes have slots for, so that some of it waits."""
    chronicle.tell(
        f"{DOCUMENTS} documents for `interactive` (2 slots), {IMAGES} images for `default`"
    )
    tally.expect(
        await lw.submit_many(
            ("ingestion", {"path": f"report-{n}.pdf", "pages": 3 + n % 4}) for n in range(DOCUMENTS)
        )
    )
    tally.expect(
        await lw.submit_many(("thumbnail", {"image": f"photo-{n}.jpg"}) for n in range(IMAGES))
    )


async def trickle(lw: Laneway, chronicle: EventLog, tally: JobStates) -> None:
    """A little of everything, for as long as somebody watches."""
    for n in itertools.count(1):
        await asyncio.sleep(TRICKLE_S)
        if n % 20 == 0:
            chronicle.tell("a new projection for `maintenance`")
            tally.expect([await lw.submit("projection")])
        elif n % 10 == 0:
            chronicle.tell("a calendar to synchronise: it will fail twice")
            tally.expect([await lw.submit("sync_calendar", {"account": f"account-{n}"})])
        elif n % 3 == 0:
            images = random.randint(1, 8)
            tally.expect(
                await lw.submit_many(
                    ("thumbnail", {"image": f"photo-{n}-{i}.jpg"}) for i in range(images)
                )
            )
        else:
            tally.expect([await lw.submit("ingestion", {"path": f"book-{n}.pdf", "pages": 14})])
