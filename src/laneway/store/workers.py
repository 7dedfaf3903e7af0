"""Worker processes and the job types they publish, as statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from laneway.domain.retry import RetryPolicy
from laneway.store.statement import Statement, nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInfo:
    """What a worker process says of itself; its id is fresh for every process."""

    id: UUID
    name: str
    host: str
    pid: int
    code: str
    job_types: Sequence[str]
    lanes: Sequence[str] | None
    concurrency: int


def register(worker: WorkerInfo) -> Statement[None]:
    return Statement(
        "workers/register_worker",
        nothing,
        {
            "id": worker.id,
            "name": worker.name,
            "host": worker.host,
            "pid": worker.pid,
            "code": worker.code,
            "job_types": list(worker.job_types),
            "lanes": list(worker.lanes) if worker.lanes is not None else None,
            "concurrency": worker.concurrency,
        },
    )


def touch(worker_id: UUID) -> Statement[None]:
    return Statement("workers/touch_worker", nothing, {"id": worker_id})


def stop(worker_id: UUID) -> Statement[None]:
    return Statement("workers/stop_worker", nothing, {"id": worker_id})


def sweep(holder: UUID) -> Statement[None]:
    """Forgets workers long gone; the leader's duty."""
    return Statement("workers/sweep_workers", nothing, {"holder": holder})


class WorkerRow(NamedTuple):
    """A worker process as operators see it."""

    id: UUID
    name: str
    host: str
    pid: int
    code: str
    job_types: list[str]
    lanes: list[str] | None
    concurrency: int
    started_at: datetime
    seen_at: datetime
    stopped_at: datetime | None
    is_live: bool
    running: int
    is_leader: bool


def listing() -> Statement[list[WorkerRow]]:
    return Statement("workers/list_workers", lambda rows: [WorkerRow(*r) for r in rows])


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeRecord:
    """A job type as its handler declares it."""

    name: str
    arguments: str
    lane: str | None
    priority: int | None
    max_retries: int
    timeout_s: float | None
    isolation: str
    stale: str
    retry: RetryPolicy


def publish(types: Sequence[TypeRecord]) -> Statement[None]:
    """Publishes job types, so that processes without their code validate and route alike."""
    return Statement(
        "job_types/publish_types",
        nothing,
        {
            "names": [t.name for t in types],
            "arguments": [t.arguments for t in types],
            "lanes": [t.lane for t in types],
            "priorities": [t.priority for t in types],
            "max_retries": [t.max_retries for t in types],
            # The driver takes no list that mixes whole numbers with others.
            "timeouts": [None if t.timeout_s is None else float(t.timeout_s) for t in types],
            "isolations": [t.isolation for t in types],
            "stales": [t.stale for t in types],
            "bases": [float(t.retry.base) for t in types],
            "caps": [float(t.retry.cap) for t in types],
            "factors": [float(t.retry.factor) for t in types],
            "jitters": [float(t.retry.jitter) for t in types],
        },
    )


class Published(NamedTuple):
    """What doors without the handler's code know of a job type."""

    name: str
    arguments: str | None
    priority: int
    max_retries: int
    is_published: bool


def published(names: Sequence[str]) -> Statement[dict[str, Published]]:
    return Statement(
        "job_types/read_types",
        lambda rows: {r[0]: Published(*r) for r in rows},
        {"names": list(names)},
    )
