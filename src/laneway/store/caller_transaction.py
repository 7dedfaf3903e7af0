"""What a handler's own transaction says about its attempt; run on the handler's connection."""

from __future__ import annotations

from typing import NamedTuple

from laneway.domain.claim import Claim
from laneway.store.statement import Statement, scalar


class GuardResult(NamedTuple):
    """What a guard found: held, cancel_requested or fenced; and the transaction it is in."""

    answer: str
    xid: str


def guard(claim: Claim) -> Statement[GuardResult]:
    """Holds the attempt until the transaction ends."""
    return Statement(
        "leases/guard_attempt",
        lambda rows: GuardResult(*rows[0]),
        {"seq": claim.seq, "attempt": claim.attempt},
    )


def is_still_in(xid: str) -> Statement[bool]:
    """Whether the connection is still in the transaction named."""
    return Statement("leases/prove_transaction", scalar, {"xid": xid})


def finish(claim: Claim, result: str, ran_s: float) -> Statement[str]:
    """Completes the job; answers finished, cancel_requested or fenced."""
    return Statement(
        "leases/finish_attempt",
        scalar,
        {"seq": claim.seq, "attempt": claim.attempt, "result": result, "ran": ran_s},
    )
