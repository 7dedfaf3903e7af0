"""Edges between jobs, as statements: the work that ends of jobs have left behind."""

from __future__ import annotations

from typing import Final, NamedTuple

from laneway.store.retention import LeaderTerm
from laneway.store.statement import Statement, scalar

# Edges followed in one transaction, and tallies of flows added up in one.
BATCH: Final = 1000
# Waiting jobs that one check reads, each with its edges.
LOOK: Final = 1000


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


class MendedWaits(NamedTuple):
    """The result of `mend_waits`.

    `after`: where to continue; None: these were all. `job_types`: types of jobs that can be
    claimed now.
    """

    mended: int
    after: int | None
    job_types: list[str] | None


_NONE: Final = MendedWaits(0, None, None)


def mend_waits(term: LeaderTerm, after: int, look: int = LOOK) -> Statement[MendedWaits]:
    """Corrects waiting jobs that nothing would release, among those after a number."""
    return Statement(
        "edges/mend_waits",
        lambda rows: MendedWaits(*rows[0]) if rows else _NONE,
        {**term._asdict(), "after": after, "look": look},
    )
