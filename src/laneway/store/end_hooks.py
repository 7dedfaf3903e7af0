"""End hooks that applications publish, as statements."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import NamedTuple

from laneway.domain.end_hook import EndHook
from laneway.store.statement import Statement


class ReplacedHook(NamedTuple):
    """A hook that another application published in another way before."""

    name: str
    application: str


def publish(hooks: Mapping[str, Collection[EndHook]]) -> Statement[list[ReplacedHook]]:
    """Publishes the hooks of each application, and deletes those that it no longer has."""
    given = [
        {
            "name": hook.name,
            "application": application,
            "job_types": hook.job_types,
            "statuses": hook.statuses,
            "workspaces": hook.workspaces,
        }
        for application, of_it in hooks.items()
        for hook in of_it
    ]
    return Statement(
        "end_hooks/publish_hooks",
        lambda rows: [ReplacedHook(*row) for row in rows],
        {"hooks": json.dumps(given), "applications": list(hooks)},
    )


def job_types_of(limit: int = 1000) -> Statement[dict[str, list[str]]]:
    """The job types of each `end hook NAME` and enabled `webhook NAME` that is not for all."""
    return Statement(
        "end_hooks/list_hooks", lambda rows: {row[0]: row[1] for row in rows}, {"limit": limit}
    )
