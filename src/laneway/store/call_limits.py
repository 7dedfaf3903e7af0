"""Limits that an attempt holds for one call: as many as it says, so that it may say it twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from laneway.domain.claim import Claim
from laneway.store.statement import Row, Statement, scalar


class LimitGrant(NamedTuple):
    """granted, full (with the seconds until a rate has room), cancel_requested, fenced or busy."""

    answer: str
    wait_s: float | None


def acquire(
    claim: Claim, wants: Mapping[str, int], inside: Mapping[str, int] | None = None
) -> Statement[LimitGrant]:
    """Lets the attempt hold each limit as often as wanted, all or none.

    `inside`: how often it holds each around this call; a limit filled by that alone is refused.
    """
    return Statement("limits/acquire_limit", _granted, _asked(claim, wants, inside))


def acquire_for_remote(
    claim: Claim, wants: Mapping[str, int], inside: Mapping[str, int], longest_s: float
) -> Statement[LimitGrant]:
    """As `acquire`, but each is given back for the attempt after `longest_s`."""
    asked = _asked(claim, wants, inside)
    return Statement("limits/acquire_for_remote", _granted, {**asked, "longest": longest_s})


def _granted(rows: Sequence[Row]) -> LimitGrant:
    return LimitGrant(*rows[0])


def _asked(
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


class EndedHold(NamedTuple):
    """A job with the limits given back for it, if any; and when the next hold is due."""

    job_id: UUID | None
    names: list[str] | None
    next_s: float | None


def end_holds() -> Statement[EndedHold]:
    """Gives back what one remote attempt has held for longer than it may."""
    return Statement("limits/end_call_holds", lambda rows: EndedHold(*rows[0]), {})
