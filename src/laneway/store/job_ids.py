"""Prefixes of job ids, as statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from laneway.domain.job_id import MOST_IDS, IdMatches, IdPrefix
from laneway.domain.permissions import Reach
from laneway.store.jobs import reach_json
from laneway.store.statement import Row, Statement

# Jobs that one request examines for those in reach.
SCANNED: Final = 2000


def find(
    prefixes: Sequence[IdPrefix], *, within: Reach | None = None
) -> Statement[list[IdMatches]]:
    """The jobs in reach whose ids begin with each prefix, in the order of the prefixes."""
    ranges = [prefix.range for prefix in prefixes]
    terms = reach_json(within)

    def decode(rows: list[Row]) -> list[IdMatches]:
        found: list[list[UUID | None]] = [[] for _ in prefixes]
        for n, job_id in rows:
            found[n - 1].append(job_id)
        return [_matches(prefix, ids) for prefix, ids in zip(prefixes, found, strict=True)]

    has_end = any(prefix.end for prefix in prefixes)
    params = {
        "firsts": [each.first for each in ranges],
        "lasts": [each.last for each in ranges],
        "limit": SCANNED if has_end else MOST_IDS,
        "look": MOST_IDS + 1 if terms is None and not has_end else SCANNED,
        "within": terms,
    }
    return Statement("jobs/find_ids", decode, params)


def _matches(prefix: IdPrefix, ids: Sequence[UUID | None]) -> IdMatches:
    fitting = tuple(one for one in ids if one is not None and one.hex.endswith(prefix.end))
    return IdMatches(str(prefix), fitting[:MOST_IDS], None in ids or len(fitting) > MOST_IDS)
