"""Published job types and their publishers, as statements."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Final

from laneway.domain.job_type import PublishedType, Publisher
from laneway.store.statement import Row, Statement, nothing

_PUBLISHER: Final = (
    "job_type", "application", "first_at", "published_at", "seen_at", "is_stale",
)  # fmt: skip

_COLUMNS = (
    "name", "lane", "arguments", "priority", "max_retries", "timeout_s", "isolation", "stale",
    "limits", "has_analysis", "approval", "approval_below", "approval_unit", "two_person",
    "approval_expires_s", "max_age_s", "unique_for_s", "unique_by", "keep_completed_s",
    "keep_cancelled_s", "keep_failed_s", "keep_count", "published_at", "is_known",
)  # fmt: skip


def _read(row: Row) -> PublishedType:
    fields = dict(zip(_COLUMNS, row, strict=True))
    arguments = fields["arguments"]
    fields["arguments"] = None if arguments is None else json.loads(arguments)
    fields["limits"] = tuple(fields["limits"])
    fields["unique_by"] = None if fields["unique_by"] is None else tuple(fields["unique_by"])
    return PublishedType(**fields)


def listing(
    lanes: Collection[str] | None, *, limit: int, after: str | None = None
) -> Statement[list[PublishedType]]:
    """Published types of the lanes (None: any) by name, after the given name."""
    return Statement(
        "job_types/list_types",
        lambda rows: [_read(r) for r in rows],
        {"lanes": None if lanes is None else sorted(lanes), "limit": limit, "after": after},
    )


def publishers(
    types: Sequence[str] | None = None,
    *,
    stale_only: bool = False,
    limit: int,
    after: tuple[str, str] = ("", ""),
) -> Statement[list[Publisher]]:
    """Applications and the job types they publish (None: any), after the given pair."""
    return Statement(
        "job_types/list_publishers",
        lambda rows: [Publisher(**dict(zip(_PUBLISHER, row, strict=True))) for row in rows],
        {
            "types": None if types is None else list(types),
            "stale_only": stale_only,
            "limit": limit,
            "after_type": after[0],
            "after_application": after[1],
        },
    )


def forget_publisher(application: str, job_type: str | None) -> Statement[list[str]]:
    """Deletes an application's policy for one job type or all; returns the job types."""
    return Statement(
        "job_types/delete_publisher",
        lambda rows: sorted(row[0] for row in rows),
        {"application": application, "job_type": job_type},
    )


def touch_publishers(pairs: Collection[tuple[str, str]]) -> Statement[None]:
    """Records that applications still publish these (job type, application) pairs."""
    return Statement(
        "job_types/touch_publishers",
        nothing,
        {"types": [t for t, _ in pairs], "applications": [a for _, a in pairs]},
    )
