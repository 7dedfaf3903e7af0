"""Handlers of a document library: embeddings, summaries, feeds, invoices, catalogues, exports."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from laneway import Context, PublicError, RetryPolicy, SyncContext
from laneway.demo.app import lw

SECONDS_PER_CHUNK = {"embed-small": 0.25, "embed-large": 0.8}


class FeedTimeout(TimeoutError):
    """A feed did not answer in time."""


class TooManyRequests(Exception):
    """The provider asks for a pause."""


@lw.handler("embed_chunks", lane="embeddings", limits=["openai"])
async def embed_chunks(
    ctx: Context, document: str, chunks: int = 120, model: str = "embed-small"
) -> dict[str, Any]:
    """Long work with progress. The lane is full, so others wait for a slot."""
    ctx.log(f"{document}: {chunks} chunks with {model}")
    async for chunk in ctx.track(range(1, chunks + 1), name="chunks"):
        await asyncio.sleep(SECONDS_PER_CHUNK.get(model, 0.5))
        if chunk % 10 == 0:
            await ctx.progress(chunk, chunks, f"chunk {chunk} of {chunks}", stage="embed")
    return {"document": document, "vectors": chunks, "dimensions": 3072}


@lw.handler("summarize", limits=["ollama"], priority=5)
async def summarize(ctx: Context, document: str, language: str = "en", pages: int = 12) -> str:
    """Holds the limit `ollama`, which allows one job at a time: the others wait for it."""
    for page in range(1, pages + 1):
        await asyncio.sleep(1.5)
        await ctx.progress(page, pages, f"page {page} of {pages}", stage="read")
    return f"{document}: {pages} pages in five sentences ({language})"


@lw.handler("export_customer")
async def export_customer(ctx: Context, customer: int, files: int = 40) -> dict[str, Any]:
    """Jobs of one customer share a concurrency key, so that they run one after the other."""
    async for _file in ctx.track(range(files), name="files"):
        await asyncio.sleep(1.0)
    return {"customer": customer, "files": files}


@lw.handler("sync_feed", max_retries=2, retry=RetryPolicy(base=2.0, jitter=0.0))
async def sync_feed(ctx: Context, feed: str, is_reachable: bool = True) -> dict[str, Any]:
    """Reads a feed; one that does not answer fails after three attempts."""
    ctx.log(f"GET https://{feed}/atom.xml")
    await asyncio.sleep(0.3)
    if not is_reachable:
        ctx.log.warning("no response header after 10 s")
        raise_timeout(feed)
    return {"feed": feed, "entries": 20 + len(feed) % 7}


def raise_timeout(feed: str) -> None:
    try:
        raise ConnectionError(f"{feed}:443: connection reset by peer")
    except ConnectionError as error:
        raise FeedTimeout(f"{feed} did not answer within 10 s") from error


@lw.handler("parse_invoice", max_retries=1, retry=RetryPolicy(base=1.0, jitter=0.0))
def parse_invoice(ctx: SyncContext, invoice: str, text: str) -> dict[str, Any]:
    """A plain function in a thread. Its errors show the frames of this file."""
    ctx.log(f"{invoice}: {len(text)} characters")
    time.sleep(0.2)
    return {"invoice": invoice, **read_total(text)}


def read_total(text: str) -> dict[str, Any]:
    fields = json.loads(text)
    return {"total": fields["total"], "currency": fields.get("currency", "EUR")}


@lw.handler("ingest_image", lane="interactive", max_retries=0)
async def ingest_image(ctx: Context, path: str, scans: int = 4) -> dict[str, Any]:
    """Refuses what it cannot read, with a message that every reader of the job may see."""
    check_image(path)
    async for _scan in ctx.track(range(scans), name="scans"):
        await asyncio.sleep(0.4)
    return {"path": path, "scans": scans}


def check_image(path: str) -> None:
    if path.endswith(".heic"):
        raise PublicError(f"{path} is not a JPEG, PNG or TIFF: convert it and submit it again")


@lw.handler("import_catalog", max_retries=2, retry=RetryPolicy(base=1.0, jitter=0.0))
async def import_catalog(
    ctx: Context, source: str, records: list[dict[str, Any]]
) -> dict[str, Any]:
    """Steps run once per job: the retry after the failed upload downloads nothing again."""
    size = await ctx.step("download", download, source)
    checked = await ctx.step("validate", validate, records)
    await ctx.save({"validated": checked, "position": f"{source}#{checked}"})
    if ctx.attempt == 1:
        ctx.log.error("upload: 429 Too Many Requests, Retry-After: 1")
        raise TooManyRequests("search-index: 429 Too Many Requests (120 requests per minute)")
    await ctx.step("upload", upload, checked)
    return {"source": source, "bytes": size, "records": records}


async def download(source: str) -> int:
    await asyncio.sleep(0.4)
    return 48_113_902 + len(source)


async def validate(records: list[dict[str, Any]]) -> int:
    await asyncio.sleep(0.2)
    return len(records)


async def upload(count: int) -> str:
    await asyncio.sleep(0.3)
    return f"{count} documents, refreshed"


@lw.handler("weekly_report", lane="reports")
async def weekly_report(ctx: Context, week: str) -> dict[str, Any]:
    """Runs inside the demo's own process, as a worker in a web application would."""
    for done, section in enumerate(("ingestion", "search", "storage", "cost"), 1):
        await asyncio.sleep(2.0)
        await ctx.progress(done, 4, section, stage="write")
    return {"week": week, "sections": 4}
