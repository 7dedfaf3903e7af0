"""Jobs for every screen of the dashboard: running, full, waiting for all reasons, failed, gated.

Flows are in digests.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Unpack

from laneway import JobHandle, Laneway, LanewayError
from laneway.client.spec import JobOptions
from laneway.control import approval, jobs
from laneway.demo import digests
from laneway.demo.history import INCOMPLETE
from laneway.demo.people import ADMIN, actor
from laneway.domain.states import Status

POLL_S: Final = 0.1
PATIENCE_S: Final = 90.0
EMBEDDINGS: Final = 14
PROJECTIONS: Final = 9

TITLES: Final = (
    "Über die Kartographie",
    "東京の地下鉄",
    "Elämää pohjoisessa",
    "تاريخ الورق",
    "A <b>bold</b> claim",
)
# Integers beyond 2^53, text in several scripts, nested lists: what a viewer of JSON must show.
RECORDS: Final[list[dict[str, Any]]] = [
    {
        "id": 9_007_199_254_740_993 + n,
        "doi": f"10.5555/{n:06d}",
        "checksum": 340_282_366_920_938_463_463_374_607_431_768_211_455 - n,
        "title": title,
        "authors": [{"name": "Zoë Ångström", "orcid": "0000-0002-1825-0097"}, {"name": "李雷"}],
        "score": 0.1 + n / 7,
        "keywords": ["histoire", "Διάλογος", "данные", "🗺️ maps"],
        "is_open_access": n % 2 == 0,
        "notes": None,
    }
    for n, title in enumerate(TITLES, 1)
]


async def submit(lw: Laneway, record: Callable[[str], None]) -> None:
    """Submit all of them; return when each is where the dashboard should show it."""
    async with asyncio.TaskGroup() as group:
        for part in (_gated, _waiting, _failing, _operated, digests.submit_all):
            group.create_task(_tolerate(part(lw), record))


async def _tolerate(part: Awaitable[None], record: Callable[[str], None]) -> None:
    """Go on without a part that fails: the user may pause lanes, or decide on a job first."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            await part
    except TimeoutError:
        record(f"missing: some sample jobs, after {PATIENCE_S:g} s")
    except LanewayError as error:
        record(f"missing: some sample jobs: {error}")


async def _submit(
    lw: Laneway, job_type: str, payload: Mapping[str, object], **options: Unpack[JobOptions]
) -> JobHandle[Any]:
    options.setdefault("created_by", "nightly-etl")
    return await lw.submit(job_type, dict(payload), **options)


async def _until(lw: Laneway, handle: JobHandle[Any], *states: Status) -> None:
    """Wait until the job has one of the states, or has ended."""
    async for job in jobs.follow(lw.database, handle.id, interval=POLL_S):
        if job.status in states:
            return


async def _gated(lw: Laneway) -> None:
    """Several approvals: with an earlier run to compare with, with costs, and for two persons."""
    earlier = {"collection": "articles", "model": "embed-small", "shards": 2}
    first = await _submit(lw, "rebuild_index", earlier, created_by="omar", tags=["search"])
    await _until(lw, first, Status.AWAITING_APPROVAL)
    comment = "cheap enough; the old index is from March"
    await approval.approve(lw.database, first.id, by=actor("lea"), comment=comment)
    refused = await _submit(lw, "rebuild_index", {"collection": "invoices", "model": "embed-large"})
    await _until(lw, refused, Status.AWAITING_APPROVAL)
    reason = "invoices are searched by number: no embeddings needed"
    await approval.reject(lw.database, refused.id, by=actor("lea", "http"), reason=reason)
    changed = {"collection": "articles", "model": "embed-large", "shards": 6}
    old = {"collection": "manuals", "older_than": "2019-01-01"}
    waiting = [
        await _submit(lw, "rebuild_index", changed, created_by="omar", tags=["search"]),
        await _submit(lw, "rebuild_index", {"collection": "manuals"}),
        await _submit(lw, "purge_collection", old, created_by="omar", tags=["gdpr"]),
        await _submit(lw, "purge_collection", {**old, "collection": "invoices"}, created_by=ADMIN),
        await _submit(lw, "vocab_refresh", {"terms": 940_000}),
    ]
    await _submit(lw, "vocab_refresh", {"terms": 12_000})  # Approved by policy.
    for handle in waiting:
        await _until(lw, handle, Status.AWAITING_APPROVAL)
    # Later: the lane has one slot, and the approved rebuild should not wait for these.
    await _until(lw, first)
    for n in range(PROJECTIONS):
        points = {"points": 400 + 40 * (n % 4)}
        await _submit(lw, "projection", points, priority=-1, tags=["atlas"])


async def _waiting(lw: Laneway) -> None:
    """A full lane, a limit, a key, and times to come."""
    for n in range(1, EMBEDDINGS + 1):
        model = "embed-large" if n % 3 == 0 else "embed-small"
        payload = {"document": f"volume-{n}.pdf", "chunks": 90 + 15 * (n % 5), "model": model}
        await _submit(lw, "embed_chunks", payload, tags=["atlas", f"volume-{n}"])
    for language in ("en", "fr", "ja", "de"):
        payload = {"document": "annual-report.pdf", "language": language}
        await _submit(lw, "summarize", payload, created_by="omar")
    for files in (90, 40, 25):
        payload = {"customer": 1042, "files": files}
        key = "customer-1042"
        await _submit(lw, "export_customer", payload, concurrency_key=key, tags=["gdpr"])
    now = datetime.now(UTC)
    tomorrow = (now + timedelta(days=1)).replace(hour=6, minute=0, second=0, microsecond=0)
    week = f"{now:%G-W%V}"
    await _submit(lw, "weekly_report", {"week": week}, run_at=tomorrow, created_by="maya")
    await _submit(lw, "ingestion", {"path": "embargoed.pdf"}, run_at=now + timedelta(minutes=40))
    last = f"{now - timedelta(days=7):%G-W%V}"
    await _submit(lw, "weekly_report", {"week": last}, created_by="maya")


async def _failing(lw: Laneway) -> None:
    """Errors of several types, with retries, tracebacks and logs; and steps that survive one."""
    feeds = ("archive", "press", "journal")
    invoices = {"2026-118": INCOMPLETE, "2026-119": "<xml/>", "2026-120": INCOMPLETE}
    wanted: list[tuple[str, Mapping[str, object]]] = [
        *(("sync_feed", {"feed": f"{x}.example.org", "is_reachable": False}) for x in feeds),
        *(("parse_invoice", {"invoice": n, "text": text}) for n, text in invoices.items()),
        *(("ingest_image", {"path": path}) for path in ("cover.heic", "map.heic")),
        *(("import_catalog", {"source": x, "records": RECORDS}) for x in ("crossref", "openalex")),
    ]
    broken = [
        await _submit(lw, job_type, payload, tags=["catalog"]) for job_type, payload in wanted
    ]
    for handle in broken:
        await _until(lw, handle)


async def _operated(lw: Laneway) -> None:
    """Jobs that people changed through several interfaces."""
    db, later = lw.database, timedelta(hours=3)
    errata = {"document": "errata.pdf", "chunks": 60}
    urgent = await _submit(lw, "embed_chunks", errata, delay=later)
    await jobs.reprioritize(db, urgent.id, 50, by=actor("maya", "mcp"))
    draft = await _submit(lw, "ingestion", {"path": "draft.pdf"}, delay=later, created_by="omar")
    await jobs.cancel(db, draft.id, by=actor("omar", "http"), reason="the draft was replaced")
    image = await _submit(lw, "ingest_image", {"path": "portrait.heic"}, created_by="omar")
    await _until(lw, image)
    await jobs.retry(db, image.id, by=actor("maya", "cli"))
    await _until(lw, image)
