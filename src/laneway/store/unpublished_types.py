"""Job types that are named but that no worker has published, probably because they are mistyped."""

from __future__ import annotations

from collections.abc import Iterable

from laneway.domain.suggestion import suggest
from laneway.domain.webhook import WEBHOOK_TYPE
from laneway.store import workers
from laneway.store.database import Database


async def find_unpublished(database: Database, job_types: Iterable[str]) -> dict[str, str]:
    """Those of the job types that no worker has published, each with `suggest` of the published."""
    # Laneway's own type is published by the first worker that delivers.
    named = sorted(set(job_types) - {WEBHOOK_TYPE})
    if not named:
        return {}
    found = await database.run(workers.published(named))
    unknown = [each for each in named if each not in found or not found[each].is_published]
    if not unknown:
        return {}
    known = await database.run(workers.published_names())
    return {each: suggest(each, known) for each in unknown}
