"""Results of steps: kept by the attempt that runs, read by those after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from laneway.domain.claim import Claim
from laneway.store.statement import Statement


class StepWrite(NamedTuple):
    """What became of a step's result: kept, cancel_requested, fenced or busy; and the result."""

    answer: str
    result: str | None


def read(claim: Claim) -> Statement[dict[str, str]]:
    """The finished steps of a job, by name, as JSON text."""
    return Statement("steps/read_steps", lambda rows: dict(map(tuple, rows)), {"seq": claim.seq})


def keep(claim: Claim, name: str, result: str, took_s: float) -> Statement[StepWrite]:
    """Keeps a result; answers it as it will be read."""
    return Statement(
        "steps/keep_step",
        lambda rows: StepWrite(*rows[0]),
        {
            "seq": claim.seq,
            "attempt": claim.attempt,
            "name": name,
            "result": result,
            "took": took_s,
        },
    )


class StepResult(NamedTuple):
    """What a step of an attempt has made, to be kept."""

    claim: Claim
    name: str
    result: str
    took_s: float


def keep_many(given: Sequence[StepResult]) -> Statement[list[StepWrite]]:
    """Keeps results of several attempts; answers each as it will be read."""
    return Statement(
        "remote/keep_steps",
        lambda rows: [StepWrite(answer, result) for _, answer, result in rows],
        {
            "seqs": [one.claim.seq for one in given],
            "attempts": [one.claim.attempt for one in given],
            "names": [one.name for one in given],
            "results": [one.result for one in given],
            "took": [one.took_s for one in given],
        },
    )
