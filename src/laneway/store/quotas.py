"""Waiting jobs and kept events of principals, counted against the bounds of grants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from laneway.domain.bounds import UNBOUND, Bounds
from laneway.store.statement import Statement, nothing, scalar


@dataclass(frozen=True, slots=True)
class Quota:
    """A principal whose jobs are counted, and its bounds.

    For events, `principal_id` is their `event_account`.
    """

    principal_id: UUID
    bounds: Bounds

    def params(self) -> dict[str, int | None]:
        """The bounds as parameters; null means unlimited."""
        bounds = {
            "max_queued": (self.bounds.max_queued, UNBOUND.max_queued),
            "max_bytes": (self.bounds.max_queued_bytes, UNBOUND.max_queued_bytes),
            "max_types": (self.bounds.max_types, UNBOUND.max_types),
        }
        return {name: None if most == none else most for name, (most, none) in bounds.items()}


def event_account(principal_id: UUID) -> UUID:
    """The id under which the kept events of a principal are counted.

    The id of the principal as a UUID of version 8; principals have version 4
    (definitions/quotas.sql).
    """
    return UUID(int=principal_id.int & ~(0xF << 76) | 8 << 76)


def charge(quota: Quota, ids: Sequence[UUID]) -> Statement[None]:
    """Counts the jobs that this transaction submits or retries; raises if they exceed the quota."""
    params = {"principal": quota.principal_id, "ids": list(ids)}
    return Statement("access/charge_quota", nothing, {**params, **quota.params()})


class RequestedJob(NamedTuple):
    """The fields of a job to submit that decide whether it is new or a duplicate."""

    workspace: str
    job_type: str
    unique_key: str | None
    # By unique_for or unique_by: only its submit tells.
    may_be_duplicate: bool = False


def check(quota: Quota, requested: Sequence[RequestedJob]) -> Statement[None]:
    """Refuses too many jobs before anything is written; `charge` decides, also on bytes.

    The number of bytes is known only after storing, because jsonb drops duplicate object keys.
    """
    params = {
        "principal": quota.principal_id,
        "workspaces": [job.workspace for job in requested],
        "job_types": [job.job_type for job in requested],
        "keys": [job.unique_key for job in requested],
        "maybe": [job.may_be_duplicate for job in requested],
    }
    return Statement("access/check_quota", nothing, {**params, **quota.params()})


def sweep(principal_id: UUID) -> Statement[int]:
    """Stops counting jobs that have started or ended; returns how many."""
    return Statement("access/sweep_quota", scalar, {"principal": principal_id})
