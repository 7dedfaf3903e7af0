"""Flows of a document library: volumes are read, joined and published, each after what it needs."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from laneway import Context, Laneway
from laneway.demo.app import lw

YEARBOOK_VOLUMES = 60
PRESS = ("archive", "gazette", "herald")
_DELIVERY_S = 7 * 86_400


class UnreadableScan(ValueError):
    """A volume whose scan cannot be read."""


@lw.handler("list_volumes")
async def list_volumes(ctx: Context, collection: str) -> list[str]:
    """The first job of a flow."""
    await asyncio.sleep(0.6)
    return [f"{collection}-{part}" for part in ("a", "b", "c")]


@lw.handler("read_volume", max_retries=0)
async def read_volume(
    ctx: Context, volume: str, pages: int = 8, is_readable: bool = True
) -> dict[str, Any]:
    """One of many that run side by side; the next job waits for all of them."""
    for page in range(1, pages + 1):
        await asyncio.sleep(0.3)
        await ctx.progress(page, pages, f"page {page} of {pages}", stage="read")
    if not is_readable:
        raise UnreadableScan(f"{volume}: the scan of page {pages} is blank")
    return {"volume": volume, "pages": pages}


@lw.handler("order_scans")
async def order_scans(ctx: Context, archive: str) -> dict[str, Any]:
    """Wait for the delivery without a worker; the program that receives it sends the event."""
    await ctx.step("write the order", dict, archive=archive, volumes=3)
    delivery = await ctx.wait_event("scans.delivered", key=archive, timeout=_DELIVERY_S)
    return {"archive": archive, "delivery": delivery}


@lw.handler("join_volumes")
async def join_volumes(ctx: Context, title: str) -> str:
    """Starts when every volume is read."""
    await asyncio.sleep(1.2)
    return f"{title}: all volumes"


@lw.handler("publish_digest")
async def publish_digest(ctx: Context, title: str) -> dict[str, Any]:
    await asyncio.sleep(0.8)
    return {"title": title, "is_public": True}


async def submit_all(lw: Laneway) -> None:
    """Flows that complete, fail, wait for a person or for an event, and a wide one."""
    await submit_press(lw, random.Random(1))
    await _submit_archive(lw)
    await _submit_search(lw)
    await _submit_loan(lw)
    await _submit_yearbook(lw)


async def submit_press(lw: Laneway, chance: random.Random) -> None:
    """A few volumes that are read, joined and published within seconds."""
    async with lw.flow("press digest", tags=["press"], created_by="nightly-etl") as flow:
        start = flow.add("list_volumes", {"collection": "press"}, name="list")
        volumes = [
            flow.add(
                "read_volume",
                {"volume": volume, "pages": chance.randint(4, 16)},
                name=f"read {volume}",
                after=[start],
            )
            for volume in PRESS
        ]
        title = {"title": "press digest"}
        join = flow.add("join_volumes", title, name="join", after=volumes)
        flow.add("publish_digest", title, name="publish", after=[join])


async def _submit_archive(lw: Laneway) -> None:
    """One volume fails: what comes after it is cancelled, except for what runs in any case."""
    async with lw.flow("archive import", tags=["catalog"], created_by="nightly-etl") as flow:
        volumes = [
            flow.add(
                "read_volume",
                {"volume": f"archive-{year}", "pages": 5, "is_readable": year != 1911},
                name=f"read {year}",
            )
            for year in (1909, 1910, 1911)
        ]
        title = {"title": "archive"}
        join = flow.add("join_volumes", title, name="join", after=volumes)
        flow.add("publish_digest", title, name="publish", after=[join])
        feed = {"feed": "archive.example.org"}
        flow.add("sync_feed", feed, name="report", after=volumes, after_failure="run")


async def _submit_search(lw: Laneway) -> None:
    """The rebuild needs an approval; the publication waits for it."""
    async with lw.flow("search update", tags=["search"], created_by="omar") as flow:
        start = flow.add("list_volumes", {"collection": "manuals"}, name="list")
        rebuild = {"collection": "manuals", "model": "embed-small", "shards": 3}
        index = flow.add("rebuild_index", rebuild, name="rebuild", after=[start])
        flow.add("publish_digest", {"title": "manuals"}, name="publish", after=[index])


async def _submit_loan(lw: Laneway) -> None:
    """The order waits for an event; the reading waits for the order."""
    async with lw.flow("interlibrary loan", tags=["catalog"], created_by="omar") as flow:
        order = flow.add("order_scans", {"archive": "city-archive"}, name="order the scans")
        read = flow.add(
            "read_volume", {"volume": "city-archive-1"}, name="read the scans", after=[order]
        )
        title = {"title": "city archive"}
        flow.add("publish_digest", title, name="publish", after=[read])


async def _submit_yearbook(lw: Laneway) -> None:
    """Many alike jobs, which the graph shows as one box."""
    async with lw.flow("yearbook", tags=["atlas"], created_by="nightly-etl") as flow:
        start = flow.add("list_volumes", {"collection": "yearbook"}, name="list")
        volumes = [
            flow.add(
                "read_volume",
                {"volume": f"yearbook-{n}", "pages": 20 + 5 * (n % 7)},
                after=[start],
                priority=-2,
            )
            for n in range(1, YEARBOOK_VOLUMES + 1)
        ]
        cover = flow.add("thumbnail", {"image": "yearbook.jpg"}, name="cover", after=[start])
        title, document = {"title": "yearbook"}, {"document": "yearbook.pdf"}
        join = flow.add("join_volumes", title, name="join", after=volumes)
        summary = flow.add("summarize", document, name="summary", after=[join], priority=-2)
        index = flow.add("embed_chunks", {**document, "chunks": 90}, name="index", after=[join])
        flow.add("publish_digest", title, name="publish", after=[cover, summary, index])
