"""Limits that an attempt holds for one call: as many as it says, so that it may say it twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from laneway.domain.claim import Claim
from laneway.store.statement import Statement, scalar


class Grant(NamedTuple):
    """granted, full (with the seconds until a rate has room), cancel_requested, fenced or busy."""

    answer: str
    wait_s: float | None


def acquire(
    claim: Claim, wants: Mapping[str, int], inside: Mapping[str, int] | None = None
) -> Statement[Grant]:
    """Lets the attempt hold each limit as often as wanted, all or none.

    `inside`: how often it holds each around this call; a limit filled by that alone is refused.
    """
    return Statement(
        "limits/acquire_limit",
        lambda rows: Grant(*rows[0]),
        {
            "seq": claim.seq,
            "attempt": claim.attempt,
            "names": list(wants),
            "wants": list(wants.values()),
            "inside": [(inside or {}).get(name, 0) for name in wants],
        },
    )


def release(claim: Claim, keeps: Mapping[str, int]) -> Statement[str]:
    """Gives back what the attempt holds beyond that; answers given, fenced or busy."""
    return Statement(
        "limits/release_limit",
        scalar,
        {
            "seq": claim.seq,
            "attempt": claim.attempt,
            "names": list(keeps),
            "keeps": list(keeps.values()),
        },
    )
