"""What is published of job types."""

from __future__ import annotations

from collections.abc import Collection

from laneway.domain import operator
from laneway.domain.job_type import PublishedType
from laneway.domain.lane import JOB_TYPE_BYTES
from laneway.domain.page import Page
from laneway.domain.text import check_text
from laneway.store import job_types as store
from laneway.store.database import Database


async def listing(
    db: Database,
    *,
    lanes: Collection[str] | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> Page[PublishedType]:
    """One page of the job types that workers published, in lanes (None: any), by name."""
    operator.check_page(limit)
    if cursor is not None:
        check_text(cursor, "cursor", max_bytes=JOB_TYPE_BYTES)
    found = await db.run(store.listing(lanes, limit=limit + 1, after=cursor))
    items = found[:limit]
    return Page(items, items[-1].name if len(found) > limit else None)
