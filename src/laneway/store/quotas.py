"""What waits of each principal, counted against the bounds of its grants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from laneway.domain.bounds import UNBOUND, Bounds
from laneway.store.statement import Statement, nothing, scalar


@dataclass(frozen=True, slots=True)
class Quota:
    """Whose jobs are counted, and how many there may be."""

    principal_id: UUID
    bounds: Bounds

    def params(self) -> dict[str, int | None]:
        """The bounds as parameters; null bounds nothing."""
        its = self.bounds
        bounds = {
            "max_queued": (its.max_queued, UNBOUND.max_queued),
            "max_bytes": (its.max_queued_bytes, UNBOUND.max_queued_bytes),
            "max_types": (its.max_types, UNBOUND.max_types),
        }
        return {name: None if most == none else most for name, (most, none) in bounds.items()}


def charge(quota: Quota, ids: Sequence[UUID]) -> Statement[None]:
    """Counts jobs that this transaction submits or retries; raises where they are too many."""
    params = {"principal": quota.principal_id, "ids": list(ids)}
    return Statement("access/charge_queue", nothing, {**params, **quota.params()})


class Asked(NamedTuple):
    """A job that is to be stored: what decides whether it is a new one."""

    workspace: str
    job_type: str
    unique_key: str | None


def check(quota: Quota, asked: Sequence[Asked]) -> Statement[None]:
    """Refuse too many jobs before anything is written; `charge` decides, also on their bytes.

    PostgreSQL drops duplicate keys: how many bytes there are is known when they are stored.
    """
    params = {
        "principal": quota.principal_id,
        "workspaces": [job.workspace for job in asked],
        "job_types": [job.job_type for job in asked],
        "keys": [job.unique_key for job in asked],
    }
    return Statement("access/check_queue", nothing, {**params, **quota.params()})


def sweep(principal_id: UUID) -> Statement[int]:
    """Stops counting what has started or ended; answers how many jobs that were."""
    return Statement("access/sweep_queue", scalar, {"principal": principal_id})
