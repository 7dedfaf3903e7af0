"""Flows of random shape, and the end of each of their jobs without faults."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.crash.flow_app import digest

MEND, PLAIN = "mend", "plain"
# The kinds of jobs with their weights: in flows that an operator mends, and in others.
_MENDED = {"node": 5, "node_apart": 2, "node_guarded": 1, "node_mended": 3}
_OTHERS = {
    "node": 10,
    "node_apart": 3,
    "node_guarded": 2,
    "rejected": 1,
    "node_broken": 2,
    "node_endless": 1,
}


class End(NamedTuple):
    """The status and the result of a job."""

    status: str
    result: str | None = None


@dataclass(frozen=True)
class PlannedJob:
    """A job, and the places of the jobs that it comes after."""

    op: str
    job_type: str
    fate: str
    parents: tuple[int, ...]
    rule: str
    ms: int
    # Whether its result depends on those of its parents.
    looks: bool

    @property
    def payload(self) -> dict[str, Any]:
        given = {"op": self.op, "ms": self.ms, "looks": self.looks}
        return given | ({"fate": self.fate} if self.job_type == "node_guarded" else {})

    def end(self, parents: list[End]) -> End:
        """Its end, with those of its parents."""
        if self.rule != "run" and any(each.status != "completed" for each in parents):
            return End("cancelled")
        if self.fate in ("rejected", "node_endless"):
            return End("cancelled")
        if self.fate == "node_broken":
            return End("failed")
        seen = [f"{each.status}:{each.result}" for each in parents] if self.looks else []
        return End("completed", digest(self.op, *seen))


@dataclass(frozen=True)
class PlannedFlow:
    """Jobs, each after earlier ones."""

    name: str
    jobs: list[PlannedJob]

    def ends(self) -> dict[str, End]:
        """The end of each job by its op."""
        found: list[End] = []
        for job in self.jobs:
            found.append(job.end([found[n] for n in job.parents]))
        return {job.op: end for job, end in zip(self.jobs, found, strict=True)}


def plan_flow(rand: random.Random, prefix: str) -> PlannedFlow:
    """A flow of two to eight jobs: a chain, a fan, or any other graph."""
    name = MEND if rand.random() < 0.35 else PLAIN
    kinds = _MENDED if name == MEND else _OTHERS
    count = rand.randint(2, 8)
    shape = rand.choice(["chain", "fan_in", "fan_out", "any", "any"])
    jobs: list[PlannedJob] = []
    ends: list[End] = []
    for place in range(count):
        parents = _parents(rand, shape, place, count)
        fate = rand.choices(list(kinds), list(kinds.values()))[0]
        # A job on hold waits until the others complete, so they must.
        is_sound = all(ends[n].status == "completed" for n in parents)
        rule = rand.choice(["cancel", "run", "hold"] if is_sound else ["cancel", "run"])
        job = PlannedJob(
            f"{prefix}-{place}",
            "node_guarded" if fate == "rejected" else fate,
            fate,
            parents,
            rule,
            rand.choice([1, 5, 20, 20, 60, 200]),
            # It runs before or after a parent is mended: its result must not tell.
            looks=not (name == MEND and rule == "run"),
        )
        jobs.append(job)
        ends.append(job.end([ends[n] for n in parents]))
    return PlannedFlow(name, jobs)


def _parents(rand: random.Random, shape: str, place: int, count: int) -> tuple[int, ...]:
    if place == 0:
        return ()
    if shape == "chain":
        return (place - 1,)
    if shape == "fan_out":
        return (0,)
    if shape == "fan_in":
        return tuple(range(place)) if place == count - 1 else ()
    return tuple(sorted(rand.sample(range(place), rand.randint(0, min(3, place)))))
