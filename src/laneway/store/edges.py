"""Edges between jobs, as statements: the work that ends of jobs have left behind."""

from __future__ import annotations

from typing import Final, NamedTuple

from laneway.store.retention import LeaderTerm
from laneway.store.statement import Statement, scalar

# Edges followed in one transaction, and tallies of flows added up in one.
BATCH: Final = 1000


class Advance(NamedTuple):
    """The result of `advance`.

    `more`: there is more to do now. `is_busy`: only work that another transaction has locked is
    left. `job_types`: types of jobs that can be claimed now.
    """

    done: int
    more: bool
    is_busy: bool
    job_types: list[str] | None


def advance(limit: int = BATCH) -> Statement[Advance]:
    """Satisfies edges, releases children and cancels them, where the end of a job could not."""
    return Statement("edges/advance", lambda rows: Advance(*rows[0]), {"limit": limit})


def fold_tallies(term: LeaderTerm, limit: int = BATCH) -> Statement[int]:
    """Adds the tallies of flows to their sums; returns how many."""
    return Statement(
        "edges/fold_tallies",
        lambda rows: int(scalar(rows) or 0),
        {**term._asdict(), "limit": limit},
    )
