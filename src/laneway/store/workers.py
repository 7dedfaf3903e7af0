"""Worker processes and the job types they publish, as statements."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple
from uuid import UUID

from laneway.domain.job_type_policy import TypeRecord
from laneway.domain.overview import RoomUse, Transport, WorkerRow
from laneway.store.statement import Row, Statement, first_column, nothing, rows_of, scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInfo:
    """The registration of a worker process; every process has a new id."""

    id: UUID
    name: str
    host: str
    pid: int
    code: str
    job_types: Sequence[str]
    lanes: Sequence[str] | None
    concurrency: int
    transport: Transport = "database"
    memory_bytes: int | None = None

    @property
    def columns(self) -> dict[str, object]:
        """Its fields as the parameters of a statement."""
        lanes = None if self.lanes is None else list(self.lanes)
        return {**asdict(self), "job_types": list(self.job_types), "lanes": lanes}


def register(worker: WorkerInfo) -> Statement[None]:
    return Statement("workers/register_worker", nothing, worker.columns)


class Presence(NamedTuple):
    """A report of a worker process that it lives, with its memory and its capacity."""

    worker_id: UUID
    memory_bytes: int | None = None
    room: Mapping[str, object] | None = None

    @property
    def params(self) -> dict[str, object]:
        room = None if self.room is None else json.dumps(self.room)
        return {"worker": self.worker_id, "memory_bytes": self.memory_bytes, "room": room}


def touch(
    worker_id: UUID, memory_bytes: int | None = None, room: Mapping[str, object] | None = None
) -> Statement[bool | None]:
    """Records that the process is live, with its capacity; returns whether it is drained."""
    presence = Presence(worker_id, memory_bytes, room)
    return Statement("workers/touch_worker", scalar, presence.params)


def stop(worker_id: UUID) -> Statement[None]:
    return Statement("workers/stop_worker", nothing, {"id": worker_id})


def sweep(holder: UUID) -> Statement[None]:
    """Deletes workers that stopped long ago; only for the leader."""
    return Statement("workers/sweep_workers", nothing, {"holder": holder})


def listing(worker_id: UUID | None = None) -> Statement[list[WorkerRow]]:
    """Workers of the last hour, or one of any age."""
    return Statement(
        "workers/list_workers", lambda rows: [_worker(r) for r in rows], {"id": worker_id}
    )


def _worker(row: Row) -> WorkerRow:
    *head, stopped_at, is_live, running, is_leader, text, seen_s = row
    room = {} if text is None else json.loads(text)
    kinds = {kind: RoomUse(**use) for kind, use in room.get("kinds", {}).items()}
    now: tuple[Any, ...] = (is_live, running, is_leader, kinds, False, stopped_at, max(seen_s, 0.0))
    worker = WorkerRow(*head, *now)
    # A stopping remote worker reports a concurrency of 0.
    is_stopping = room.get("is_stopping") or (worker.transport == "grpc" and not worker.concurrency)
    return replace(worker, is_stopping=worker.is_live and bool(is_stopping))


def lock(worker_id: UUID) -> Statement[None]:
    return Statement("workers/lock_worker", nothing, {"id": worker_id})


def drain(worker_id: UUID, by: str, *, drained: bool) -> Statement[bool | None]:
    """Drains or resumes a worker; None when it is gone."""
    return Statement(
        "workers/drain_worker", scalar, {"id": worker_id, "by": by, "drained": drained}
    )


def publish(
    types: Sequence[TypeRecord], *, loosens: bool = True, is_first: bool = False
) -> Statement[None]:
    """Publishes job types, so that processes without their code validate and route them alike.

    Unless `loosens`, required approvals stay required. `is_first`: published types stay unchanged.
    """
    return Statement(
        "job_types/publish_types",
        nothing,
        {
            "types": json.dumps([record.to_columns() for record in types]),
            "loosens": loosens,
            "first": is_first,
        },
    )


class Published(NamedTuple):
    """The published properties of a job type, for processes without the handler's code."""

    name: str
    arguments: str | None
    priority: int
    max_retries: int
    is_published: bool
    unique_for_s: float | None = None
    unique_by: list[str] | None = None


def published(names: Sequence[str]) -> Statement[dict[str, Published]]:
    return Statement(
        "job_types/read_types",
        lambda rows: {r[0]: Published(*r) for r in rows},
        {"names": list(names)},
    )


def published_names(limit: int = 1000) -> Statement[list[str]]:
    """The names of published job types, to suggest one."""
    return Statement("job_types/list_names", first_column, {"limit": limit})


class Conflict(NamedTuple):
    """A job type that applications publish with different policies, and the fields that differ."""

    job_type: str
    applications: list[str]
    fields: list[str]

    def __str__(self) -> str:
        by, what = ", ".join(self.applications), ", ".join(self.fields)
        return f"job type {self.job_type} is published by {by} with different {what}"


def conflicts(types: Sequence[str] | None = None) -> Statement[list[Conflict]]:
    """Job types that applications publish differently, among those named or all."""
    return Statement(
        "job_types/find_conflicts",
        rows_of(Conflict),
        {"types": None if types is None else list(types)},
    )
