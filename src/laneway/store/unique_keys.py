"""The unique keys of new jobs, as statements."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from laneway.domain.job import NewJob
from laneway.store.statement import Statement


def reserve(jobs: Sequence[NewJob], seqs: Sequence[int]) -> Statement[set[int]]:
    """Takes the unique keys of new jobs; returns the sequence numbers that got theirs."""
    return Statement(
        "jobs/reserve_keys",
        lambda rows: {r[0] for r in rows},
        {**_params(jobs), "seqs": list(seqs)},
    )


def find(jobs: Sequence[NewJob]) -> Statement[dict[tuple[str, str, str], tuple[UUID, str, bool]]]:
    """The live jobs that hold the unique keys of these jobs, as duplicates with their status."""
    return Statement(
        "jobs/find_keys",
        lambda rows: {(r[0], r[1], r[2]): (r[3], r[4], True) for r in rows},
        _params(jobs),
    )


def _params(jobs: Sequence[NewJob]) -> dict[str, object]:
    return {
        "workspaces": [j.workspace for j in jobs],
        "job_types": [j.job_type for j in jobs],
        "keys": [j.unique_key for j in jobs],
    }
