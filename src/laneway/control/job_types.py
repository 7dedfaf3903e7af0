"""Published job types, and the applications that publish them."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Final

from laneway.control.audit import audited
from laneway.domain import verb_rules
from laneway.domain.job_type import PublishedType, Publisher
from laneway.domain.lane import JOB_TYPE_BYTES
from laneway.domain.page import Page
from laneway.domain.text import check_text
from laneway.errors import InvalidInput, NotFound
from laneway.observability.safe_logger import SafeLogger
from laneway.store import job_types as store
from laneway.store.database import Database

log = SafeLogger("laneway.control")

APPLICATION_BYTES: Final = 512
AUDITED_TYPES: Final = 100


async def listing(
    db: Database,
    *,
    lanes: Collection[str] | None = None,
    limit: int = 50,
    cursor: str | None = None,
) -> Page[PublishedType]:
    """One page of the job types that workers published, in lanes (None: any), by name."""
    verb_rules.check_page(limit)
    if cursor is not None:
        check_text(cursor, "cursor", max_bytes=JOB_TYPE_BYTES)
    found = await db.run(store.listing(lanes, limit=limit + 1, after=cursor))
    items = found[:limit]
    return Page(items, items[-1].name if len(found) > limit else None)


async def publishers(
    db: Database,
    *,
    job_type: str | None = None,
    stale_only: bool = False,
    limit: int = 50,
    cursor: str | None = None,
) -> Page[Publisher]:
    """One page of the applications and the job types they publish, by job type."""
    verb_rules.check_page(limit)
    types = None if job_type is None else [_type(job_type)]
    after = ("", "") if cursor is None else _place(cursor)
    found = await db.run(
        store.publishers(types, stale_only=stale_only, limit=limit + 1, after=after)
    )
    items = found[:limit]
    more = len(found) > limit
    return Page(items, json.dumps([items[-1].job_type, items[-1].application]) if more else None)


async def forget_publisher(
    db: Database, application: str, *, job_type: str | None = None, by: str
) -> list[str]:
    """Remove an application that is gone from one job type or all; return those job types.

    The settings of other applications take effect when their workers publish next, at their start.
    """
    verb_rules.check_actor(by)
    check_text(application, "application", max_bytes=APPLICATION_BYTES)
    named = None if job_type is None else _type(job_type)
    async with audited(db, by, "application.forgotten", "application", application) as change:
        forgotten = await change.run(store.forget_publisher(application, named))
        if not forgotten:
            what = "no job type" if named is None else f"not the job type {named}"
            raise NotFound(f"{application} publishes {what}")
        change.before = {"job_types": forgotten[:AUDITED_TYPES], "count": len(forgotten)}
    log.info(
        "application %s: its declarations of %s were deleted by %s",
        application,
        ", ".join(forgotten),
        by,
    )
    return forgotten


def _type(name: str) -> str:
    return check_text(name, "job_type", max_bytes=JOB_TYPE_BYTES)


def _place(cursor: str) -> tuple[str, str]:
    try:
        job_type, application = json.loads(cursor)
        return _type(job_type), check_text(application, "application", max_bytes=APPLICATION_BYTES)
    except (ValueError, TypeError, RecursionError, InvalidInput):
        raise InvalidInput("cursor", "must be the next_cursor of a page") from None
