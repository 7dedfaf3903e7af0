"""Circles: a job that cannot start because jobs that wait for it hold what it needs.

A job is stuck if it runs and waits for a stuck job, or if it is queued and stuck jobs alone hold
something it needs: the slots of its lane, a limit, its key, or the room of its workers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
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


class _RunIndex:
    """Runs by what they hold: a look at a queued job costs the same among few runs and many."""

    def __init__(self, runs: Iterable[WaitingRun]) -> None:
        self.lanes: defaultdict[str, list[WaitingRun]] = defaultdict(list)
        self.limits: defaultdict[str, list[WaitingRun]] = defaultdict(list)
        # A run may hold a limit more than once.
        self.used: Counter[str] = Counter()
        self.runs: dict[int, WaitingRun] = {}
        self._workers: defaultdict[UUID, list[WaitingRun]] = defaultdict(list)
        self._rooms: dict[Collection[UUID], list[WaitingRun]] = {}
        for run in runs:
            self.runs[run.seq] = run
            self.lanes[run.lane].append(run)
            self._workers[run.worker_id].append(run)
            self.used.update(run.limits)
            for name in set(run.limits):
                self.limits[name].append(run)

    def inside(self, workers: frozenset[UUID]) -> list[WaitingRun]:
        """The runs of these workers; most queued jobs have the same ones."""
        if workers not in self._rooms:
            self._rooms[workers] = [run for one in workers for run in self._workers[one]]
        return self._rooms[workers]


def find_circle(graph: WaitGraph, job_id: UUID) -> list[Reason]:
    """The reason that names the circle of a queued job; empty if it is in none."""
    job = next((one for one in graph.queued.values() if one.id == job_id), None)
    if job is None:
        return []
    runs = _RunIndex(_stuck_runs(graph))
    return [
        Reason("circle", f"{_holders(block, job, graph)}; {block.cure}")
        for block in _blocks(graph, job, runs)
    ]


def _stuck_runs(graph: WaitGraph) -> list[WaitingRun]:
    """The largest set of runs that wait for each other through queued jobs."""
    runs, queued = dict(graph.runs), dict(graph.queued)
    while True:
        stuck = _still_waiting(runs, queued)
        holders = _RunIndex(stuck.values())
        blocked = {seq: job for seq, job in queued.items() if any(_blocks(graph, job, holders))}
        if (len(stuck), len(blocked)) == (len(runs), len(queued)):
            return list(runs.values())
        runs, queued = stuck, blocked


def _still_waiting(
    runs: dict[int, WaitingRun], queued: dict[int, QueuedJob]
) -> dict[int, WaitingRun]:
    """The runs left when each one ends that waits for none of them and for no queued job."""
    waiters: defaultdict[int, list[int]] = defaultdict(list)
    left = dict.fromkeys(runs, 0)
    for seq, run in runs.items():
        for each in run.waits_for:
            if each in runs or each in queued:
                waiters[each].append(seq)
                left[seq] += 1
    ended = [seq for seq, count in left.items() if count == 0]
    for one in ended:
        for seq in waiters[one]:
            left[seq] -= 1
            if left[seq] == 0:
                ended.append(seq)
    return {seq: runs[seq] for seq, count in left.items() if count > 0}


def _blocks(graph: WaitGraph, job: QueuedJob, runs: _RunIndex) -> Iterator[Block]:
    """Everything the job needs that these runs alone hold."""
    lane = graph.lanes.get(job.lane)
    if lane is not None and lane.is_full:
        inside = runs.lanes[job.lane]
        if len(inside) == lane.used:
            yield Block(
                inside,
                f"running in lane {job.lane}, {lane.used} of {lane.most} slots",
                f"raise max_slots with `laneway lanes set {job.lane} --max-slots {lane.most + 1}`,"
                " or move one of the job types to another lane with `laneway lanes move TYPE LANE`",
            )
    for name in job.limits:
        limit = graph.limits.get(name)
        if limit is None or not limit.is_full:
            continue
        if runs.used[name] == limit.used:
            yield Block(
                runs.limits[name],
                f"holding the limit {name}, {limit.used} of {limit.most}",
                f"raise it with `laneway limits set {name} --max-concurrent {limit.most + 1}`,"
                " or release it before waiting",
            )
    if job.key_holder in runs.runs:
        yield Block(
            [runs.runs[job.key_holder]],
            "holding its concurrency_key",
            "submit one of them with another concurrency_key, or none",
        )
    if job.workers:
        there = runs.inside(job.workers)
        if len(there) == sum(graph.workers.get(worker, 0) for worker in job.workers):
            yield Block(
                there,
                "taking all room of its workers",
                "start another worker, or raise its --concurrency, --threads or --children",
            )


def first_circle(graph: WaitGraph) -> tuple[UUID, Reason] | None:
    """A queued job that is in a circle, and the reason; None: there is none."""
    awaited = {seq for run in _stuck_runs(graph) for seq in run.waits_for}
    for seq in sorted(awaited & graph.queued.keys()):
        job_id = graph.queued[seq].id
        if found := find_circle(graph, job_id):
            return job_id, found[0]
    return None


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
