"""Limits that an attempt holds for one call. Requests give totals, so repeating one is safe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from laneway.domain.claim import Claim
from laneway.store.statement import Row, Statement, one_row, scalar


class LimitGrant(NamedTuple):
    """Whether limits were granted: granted, full, cancel_requested, fenced or busy.

    `wait_s`: when full, the seconds until a rate has room.
    """

    answer: str
    wait_s: float | None


def acquire(
    claim: Claim, wants: Mapping[str, int], inside: Mapping[str, int] | None = None
) -> Statement[LimitGrant]:
    """Acquires limits for an attempt up to the totals in `wants`, all or none.

    `inside`: how often enclosing calls hold each; a limit that they alone fill is refused.
    """
    return Statement("limits/acquire_limit", _granted, _params(claim, wants, inside))


def acquire_for_remote(
    claim: Claim, wants: Mapping[str, int], inside: Mapping[str, int], longest_s: float
) -> Statement[LimitGrant]:
    """Like `acquire`, but the server releases each limit after `longest_s`."""
    params = _params(claim, wants, inside)
    return Statement("limits/acquire_for_remote", _granted, {**params, "longest": longest_s})


def _granted(rows: Sequence[Row]) -> LimitGrant:
    return LimitGrant(*rows[0])


def _params(
    claim: Claim, wants: Mapping[str, int], inside: Mapping[str, int] | None
) -> dict[str, object]:
    return {
        "seq": claim.seq,
        "attempt": claim.attempt,
        "names": list(wants),
        "wants": list(wants.values()),
        "inside": [(inside or {}).get(name, 0) for name in wants],
    }


def release(claim: Claim, keeps: Mapping[str, int]) -> Statement[str]:
    """Releases what the attempt holds beyond `keeps`; returns given, fenced or busy."""
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


class EndedHold(NamedTuple):
    """A job and its released limits, if any, and the seconds until the next hold expires."""

    job_id: UUID | None
    names: list[str] | None
    next_s: float | None


def end_holds() -> Statement[EndedHold]:
    """Releases the expired limits of one remote attempt."""
    return Statement("limits/end_call_holds", one_row(EndedHold), {})
