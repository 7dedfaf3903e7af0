"""The jobs that keep the demo moving, until it is stopped."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from typing import Final

from laneway import Laneway, LanewayError
from laneway.control import approval
from laneway.demo.digests import submit_press
from laneway.demo.events import EventLog, JobStates
from laneway.demo.history import COMPLETE, INCOMPLETE, NAMES
from laneway.demo.indexes import SIZES
from laneway.demo.sample_jobs import RECORDS

TRICKLE_S = 1.0
# While lanes are drained or the gate is shut, no more jobs pile up.
MOST_UNFINISHED = 200
MOST_GATED = 6


async def trickle(
    lw: Laneway, event_log: EventLog, job_states: JobStates, chance: random.Random
) -> None:
    """Submit a few jobs of every kind, until cancelled."""
    for n in itertools.count(1):
        await asyncio.sleep(TRICKLE_S)
        try:
            if job_states.unfinished > MOST_UNFINISHED:
                # Without a terminal, no live view counts the jobs that have ended.
                await job_states.refresh()
            else:
                await _submit_some(lw, n, event_log, job_states, chance)
        except LanewayError as error:
            event_log.record(str(error))


async def _submit_some(
    lw: Laneway, n: int, event_log: EventLog, job_states: JobStates, chance: random.Random
) -> None:
    if n % 2 == 0:
        book = {"path": f"{chance.choice(NAMES)}-{n}.pdf", "pages": chance.randint(10, 50)}
        job_states.count([await lw.submit("ingestion", book, created_by="omar")])
    for every, submit in _REGULAR.items():
        if n % every == 0:
            await submit(lw, n, chance)
    if n % 10 == 0:
        event_log.record("a calendar to sync: it will fail twice")
        job_states.count([await lw.submit("sync_calendar", {"account": f"account-{n}"})])
    elif n % 3 == 0:
        images = (f"photo-{n}-{i}.jpg" for i in range(chance.randint(1, 8)))
        job_states.count(await lw.submit_many([("thumbnail", {"image": each}) for each in images]))


async def _embed(lw: Laneway, n: int, chance: random.Random) -> None:
    model = chance.choice(["embed-small", "embed-small", "embed-large"])
    payload = {"document": f"volume-{n}.pdf", "chunks": chance.randint(60, 160), "model": model}
    await lw.submit("embed_chunks", payload, tags=["atlas"], created_by="nightly-etl")


async def _feed(lw: Laneway, n: int, chance: random.Random) -> None:
    feed = f"{chance.choice(NAMES)}.example.org"
    is_reachable = chance.random() < 0.75
    await lw.submit("sync_feed", {"feed": feed, "is_reachable": is_reachable})


async def _invoice(lw: Laneway, n: int, chance: random.Random) -> None:
    text = COMPLETE if chance.random() < 0.7 else INCOMPLETE
    await lw.submit("parse_invoice", {"invoice": f"2026-{n}", "text": text}, created_by="omar")


async def _image(lw: Laneway, n: int, chance: random.Random) -> None:
    suffix = "tiff" if chance.random() < 0.8 else "heic"
    await lw.submit("ingest_image", {"path": f"scan-{n}.{suffix}"}, created_by="omar")


async def _summary(lw: Laneway, n: int, chance: random.Random) -> None:
    document = f"{chance.choice(NAMES)}-{n}.pdf"
    await lw.submit("summarize", {"document": document}, created_by="omar")


async def _report(lw: Laneway, n: int, chance: random.Random) -> None:
    week = f"2026-W{chance.randint(10, 52)}"
    await lw.submit("weekly_report", {"week": week}, created_by="maya")


async def _projection(lw: Laneway, n: int, chance: random.Random) -> None:
    points = {"points": chance.randint(380, 520)}
    await lw.submit("projection", points, priority=-1, tags=["atlas"])


async def _catalog(lw: Laneway, n: int, chance: random.Random) -> None:
    payload = {"source": chance.choice(["crossref", "openalex"]), "records": RECORDS}
    await lw.submit("import_catalog", payload, tags=["catalog"], created_by="nightly-etl")


async def _rebuild(lw: Laneway, n: int, chance: random.Random) -> None:
    """Ask for an approval, unless enough of them wait."""
    if len((await approval.pending(lw.database, limit=MOST_GATED)).items) < MOST_GATED:
        payload = {"collection": chance.choice(list(SIZES)), "shards": chance.randint(1, 8)}
        await lw.submit("rebuild_index", payload, created_by="omar", tags=["search"])


async def _flow(lw: Laneway, n: int, chance: random.Random) -> None:
    await submit_press(lw, chance)


# Every so many seconds; lanes with a backlog get as much as they finish.
_REGULAR: Final[dict[int, Callable[[Laneway, int, random.Random], Awaitable[None]]]] = {
    7: _image,
    9: _feed,
    11: _invoice,
    14: _embed,
    21: _summary,
    31: _projection,
    37: _catalog,
    45: _report,
    75: _flow,
    120: _rebuild,
}
