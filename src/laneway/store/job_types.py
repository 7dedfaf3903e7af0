"""Published job types, as a statement."""

from __future__ import annotations

import json
from collections.abc import Collection

from laneway.domain.job_type import PublishedType
from laneway.store.statement import Row, Statement

_COLUMNS = (
    "name", "lane", "arguments", "priority", "max_retries", "timeout_s", "isolation", "stale",
    "limits", "has_analysis", "approval", "approval_below", "approval_unit", "two_person",
    "approval_expires_s", "max_age_s", "published_at", "is_known",
)  # fmt: skip


def _read(row: Row) -> PublishedType:
    told = dict(zip(_COLUMNS, row, strict=True))
    told["arguments"] = None if told["arguments"] is None else json.loads(told["arguments"])
    told["limits"] = tuple(told["limits"])
    return PublishedType(**told)


def listing(
    lanes: Collection[str] | None, *, limit: int, after: str | None = None
) -> Statement[list[PublishedType]]:
    """Published types of the lanes (None: any) by name, those after the one named."""
    return Statement(
        "job_types/list_types",
        lambda rows: [_read(r) for r in rows],
        {"lanes": None if lanes is None else sorted(lanes), "limit": limit, "after": after},
    )
