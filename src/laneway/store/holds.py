"""Limits held outside of jobs, as statements."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple
from uuid import UUID

from laneway.store.call_limits import LimitGrant
from laneway.store.statement import Statement, one_row, rows_of, scalar


class Holder(NamedTuple):
    """A process that holds limits, and the host it runs on."""

    id: UUID
    host: str


def hold(
    hold_id: UUID, holder: Holder, names: Sequence[str], rank: int, lease_s: float
) -> Statement[LimitGrant]:
    """Acquires one of each limit, all or none; the answer is granted or full."""
    return Statement(
        "limits/hold_limit",
        one_row(LimitGrant),
        {
            "hold": hold_id,
            "holder": holder.id,
            "host": holder.host,
            "names": list(names),
            "rank": rank,
            "lease": lease_s,
        },
    )


class Holders(NamedTuple):
    """A limit, its maximum of concurrent holders, and some of the holders."""

    name: str
    max_concurrent: int | None
    holders: list[str]

    def __str__(self) -> str:
        return f"{self.name} is held by {', '.join(self.holders) or 'no process now'}"


def find_holders(names: Sequence[str], most: int = 5) -> Statement[list[Holders]]:
    return Statement("limits/find_holders", rows_of(Holders), {"names": list(names), "most": most})


def renew(holds: Collection[UUID], lease_s: float) -> Statement[set[UUID]]:
    """Renews leases; returns those that had lapsed."""
    return Statement(
        "limits/renew_holds",
        lambda rows: {row[0] for row in rows},
        {"holds": list(holds), "lease": lease_s},
    )


def drop(holds: Collection[UUID]) -> Statement[int]:
    """Releases the limits of these holds; returns how many held one."""
    return Statement("limits/drop_holds", scalar, {"holds": list(holds)})
