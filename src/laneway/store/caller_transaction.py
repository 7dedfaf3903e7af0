"""Statements that a handler runs in its own transaction: guard and finish its attempt."""

from __future__ import annotations

from typing import NamedTuple

from laneway.domain.claim import Claim
from laneway.store.statement import Statement, one_row, scalar


class GuardResult(NamedTuple):
    """The result of a guard (held, cancel_requested or fenced) and its transaction id."""

    answer: str
    xid: str


def guard(claim: Claim) -> Statement[GuardResult]:
    """Keeps the attempt from being reclaimed until the transaction ends."""
    return Statement(
        "leases/guard_attempt", one_row(GuardResult), {"seq": claim.seq, "attempt": claim.attempt}
    )


def is_still_in(xid: str) -> Statement[bool]:
    """Whether the connection is still in this transaction."""
    return Statement("leases/check_transaction", scalar, {"xid": xid})


def finish(claim: Claim, result: str, ran_s: float) -> Statement[str]:
    """Completes the job; returns finished, cancel_requested or fenced."""
    return Statement(
        "leases/finish_attempt",
        scalar,
        {"seq": claim.seq, "attempt": claim.attempt, "result": result, "ran": ran_s},
    )
