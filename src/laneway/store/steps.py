"""Step results, as statements: stored by the running attempt, read by later attempts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from laneway.domain.claim import Claim
from laneway.domain.review import Step
from laneway.store.statement import Statement, one_row, rows_of

# Steps shown with a job.
MAX_STEPS: Final = 200


class StepWrite(NamedTuple):
    """The result of storing a step (kept, cancel_requested, fenced or busy) and its value."""

    answer: str
    result: str | None


def read(claim: Claim) -> Statement[dict[str, str]]:
    """The finished steps of a job, by name, as JSON text."""
    return Statement("steps/read_steps", lambda rows: dict(map(tuple, rows)), {"seq": claim.seq})


def listing(job_id: UUID) -> Statement[list[Step]]:
    """The newest finished steps of a job, in order, without their results."""
    return Statement("steps/list_steps", rows_of(Step), {"id": job_id, "limit": MAX_STEPS})


def save(claim: Claim, name: str, result: str, took_s: float) -> Statement[StepWrite]:
    """Stores a result; returns it as later attempts will read it."""
    return Statement(
        "steps/save_step",
        one_row(StepWrite),
        {
            "seq": claim.seq,
            "attempt": claim.attempt,
            "name": name,
            "result": result,
            "took": took_s,
        },
    )


class StepResult(NamedTuple):
    """The result of a step of an attempt, to be stored."""

    claim: Claim
    name: str
    result: str
    took_s: float


def save_many(results: Sequence[StepResult]) -> Statement[list[StepWrite]]:
    """Stores results of several attempts; returns each as later attempts will read it."""
    return Statement(
        "remote/save_steps",
        lambda rows: [StepWrite(answer, result) for _, answer, result in rows],
        {
            "seqs": [step.claim.seq for step in results],
            "attempts": [step.claim.attempt for step in results],
            "names": [step.name for step in results],
            "results": [step.result for step in results],
            "took": [step.took_s for step in results],
        },
    )
