"""Circles: a job that cannot start because jobs that wait for it hold what it needs.

A job is stuck if it runs and waits for a stuck job, or if it is queued and stuck jobs alone hold
something it needs: the slots of its lane, a limit, its key, or the room of its workers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple
from uuid import UUID

from laneway.domain.explanation import Reason
from laneway.store.waits import QueuedJob, WaitGraph, WaitingRun

_SHOWN: Final = 5


class Block(NamedTuple):
    """Something that a queued job needs, and the runs that hold all of it."""

    holders: list[WaitingRun]
    held: str
    cure: str


def find_circle(graph: WaitGraph, job_id: UUID) -> list[Reason]:
    """The reason that names the circle of a queued job; empty if it is in none."""
    job = next((one for one in graph.queued.values() if one.id == job_id), None)
    if job is None:
        return []
    runs = _stuck_runs(graph)
    return [
        Reason("circle", f"circle: {_holders(block, job, graph)}; {block.cure}")
        for block in _blocks(graph, job, runs)
    ]


def _stuck_runs(graph: WaitGraph) -> list[WaitingRun]:
    """The largest set of runs that wait for each other through queued jobs."""
    runs, queued = dict(graph.runs), dict(graph.queued)
    while True:
        stuck = {
            seq: run
            for seq, run in runs.items()
            if any(each in runs or each in queued for each in run.waits_for)
        }
        blocked = {
            seq: job for seq, job in queued.items() if any(_blocks(graph, job, stuck.values()))
        }
        if (len(stuck), len(blocked)) == (len(runs), len(queued)):
            return list(runs.values())
        runs, queued = stuck, blocked


def _blocks(graph: WaitGraph, job: QueuedJob, runs: Collection[WaitingRun]) -> Iterator[Block]:
    """Everything the job needs that these runs alone hold."""
    lane = graph.lanes.get(job.lane)
    if lane is not None and lane.is_full:
        inside = [run for run in runs if run.lane == job.lane]
        if len(inside) == lane.used:
            yield Block(
                inside,
                f"running in lane {job.lane}, {lane.used} of {lane.most} slots",
                f"raise max_slots with `laneway lanes set {job.lane} --max-slots {lane.most + 1}`,"
                " or move one of the job types to another lane with `laneway lanes move TYPE LANE`",
            )
    for name in job.limits:
        limit = graph.limits.get(name)
        holding = [run for run in runs if name in run.limits]
        if limit is None or not limit.is_full:
            continue
        if sum(run.limits.count(name) for run in holding) == limit.used:
            yield Block(
                holding,
                f"holding the limit {name}, {limit.used} of {limit.most}",
                f"raise it with `laneway limits set {name} --max-concurrent {limit.most + 1}`,"
                " or release it before waiting",
            )
    if (holder := next((run for run in runs if run.seq == job.key_holder), None)) is not None:
        yield Block(
            [holder],
            "holding its concurrency_key",
            "submit one of them with another concurrency_key, or none",
        )
    if job.workers:
        there = [run for run in runs if run.worker_id in job.workers]
        if len(there) == sum(graph.workers.get(worker, 0) for worker in job.workers):
            yield Block(
                there,
                "taking all room of its workers",
                "start another worker, or raise its --concurrency, --threads or --children",
            )


def _holders(block: Block, job: QueuedJob, graph: WaitGraph) -> str:
    ids = [str(run.id) for run in block.holders]
    more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
    one = len(ids) == 1
    who = f"{'job' if one else 'jobs'} {', '.join(ids[:_SHOWN])}{more} ({block.held})"
    verb = "waits" if one else "wait"
    if all(job.seq in run.waits_for for run in block.holders):
        return f"{who} {verb} for this job"
    others = _ids(graph, {each for run in block.holders for each in run.waits_for} - {job.seq})
    also = "this job, and " if any(job.seq in run.waits_for for run in block.holders) else ""
    return f"{who} {verb} for {also}{others}, which cannot start or end either"


def _ids(graph: WaitGraph, seqs: Iterable[int]) -> str:
    found = [
        str(known.id)
        for seq in sorted(seqs)
        if (known := graph.queued.get(seq) or graph.runs.get(seq)) is not None
    ]
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return f"{'job' if len(found) == 1 else 'jobs'} {', '.join(found[:_SHOWN])}{more}"
