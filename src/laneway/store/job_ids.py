"""Prefixes of job ids, as statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from laneway.domain.job_id import MOST_IDS, IdMatches, IdPrefix
from laneway.domain.permissions import Reach
from laneway.store.jobs import reach_json
from laneway.store.statement import Row, Statement

# Jobs that one request examines for those in reach, or for those with the end of one prefix.
SCANNED: Final = 2000


def find(
    prefixes: Sequence[IdPrefix], *, within: Reach | None = None
) -> Statement[list[IdMatches]]:
    """The jobs in reach with each prefix and its end, in the order of the prefixes."""
    ranges = [prefix.range for prefix in prefixes]
    terms = reach_json(within)

    def decode(rows: list[Row]) -> list[IdMatches]:
        found: list[list[UUID | None]] = [[] for _ in prefixes]
        for n, job_id in rows:
            found[n - 1].append(job_id)
        return [_matches(prefix, ids) for prefix, ids in zip(prefixes, found, strict=True)]

    params = {
        "firsts": [each.first for each in ranges],
        "lasts": [each.last for each in ranges],
        "limit": MOST_IDS,
        "look": MOST_IDS + 1 if terms is None else SCANNED,
        "within": terms,
        "ends": [prefix.end or None for prefix in prefixes],
        "end_look": SCANNED,
    }
    return Statement("jobs/find_ids", decode, params)


def _matches(prefix: IdPrefix, ids: Sequence[UUID | None]) -> IdMatches:
    return IdMatches(str(prefix), tuple(one for one in ids if one is not None), None in ids)
