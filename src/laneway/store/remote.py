"""Remote workers, as statements: their streams, leases and finished steps."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from laneway.domain.claim import Claim
from laneway.domain.job_type_policy import TypeRecord
from laneway.domain.overview import Transport
from laneway.store.statement import Row, Statement, nothing, rows_of, scalar
from laneway.store.workers import WorkerInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamInfo(WorkerInfo):
    """The registration of a remote worker, with its principal and stream."""

    stream_id: UUID
    principal_id: UUID
    transport: Transport = "grpc"


def register(stream: StreamInfo) -> Statement[bool | None]:
    """Registers the newest stream of a worker; returns whether the worker is drained.

    None: the worker id belongs to another principal. Read its leases afterwards: this statement
    may have waited for the last claim of an older stream, and does not see it.
    """
    return Statement("remote/register_worker", scalar, stream.columns)


class StreamState(NamedTuple):
    """The stored state of a remote worker; `is_current`: no newer stream exists."""

    worker_id: UUID
    is_current: bool
    is_drained: bool
    running: int


def touch(
    streams: Sequence[tuple[UUID, UUID]],
    memory_bytes: Sequence[int | None],
    rooms: Sequence[Mapping[str, object]],
    changed: Sequence[bool],
) -> Statement[list[StreamState]]:
    """Records that workers (id, stream) are live, with their memory and capacity.

    A recently seen worker is written only if its capacity changed.
    """
    return Statement(
        "remote/touch_workers",
        rows_of(StreamState),
        {
            **_streams(streams),
            "memory": list(memory_bytes),
            "rooms": [json.dumps(room) for room in rooms],
            "changed": list(changed),
        },
    )


def stop(streams: Sequence[tuple[UUID, UUID]]) -> Statement[None]:
    """Records that workers (id, stream) have stopped."""
    return Statement("remote/stop_workers", nothing, _streams(streams))


def _streams(streams: Sequence[tuple[UUID, UUID]]) -> dict[str, object]:
    return {"ids": [id_ for id_, _ in streams], "streams": [stream_id for _, stream_id in streams]}


class Lease(NamedTuple):
    """An attempt that a worker holds."""

    worker_id: UUID
    claim: Claim
    lane: str
    job_type: str
    lease_s: int
    age_s: float
    left_s: float
    is_renewed: bool


def read_leases(workers: Sequence[UUID]) -> Statement[list[Lease]]:
    """Every lease of these workers."""

    def decode(rows: list[Row]) -> list[Lease]:
        return [
            Lease(worker, Claim(seq, job_id, attempt), *rest)
            for worker, seq, job_id, attempt, *rest in rows
        ]

    return Statement("remote/read_leases", decode, {"workers": list(workers)})


class RunningAttempt(NamedTuple):
    """An attempt that a worker runs, or ran to its end."""

    claim: Claim
    lane: str
    # With the analysis prefix while an analysis runs.
    job_type: str


def find_attempts(
    worker_id: UUID, principal_id: UUID, attempts: Sequence[tuple[UUID, int]]
) -> Statement[dict[tuple[UUID, int], RunningAttempt]]:
    """Those of the attempts (job id, attempt) that this worker runs or ran."""

    def decode(rows: list[Row]) -> dict[tuple[UUID, int], RunningAttempt]:
        found = {}
        for index, seq, lane, job_type in rows:
            job_id, attempt = attempts[index - 1]
            found[job_id, attempt] = RunningAttempt(Claim(seq, job_id, attempt), lane, job_type)
        return found

    return Statement(
        "remote/find_attempts",
        decode,
        {
            "worker": worker_id,
            "principal": principal_id,
            "ids": [job_id for job_id, _ in attempts],
            "attempts": [attempt for _, attempt in attempts],
        },
    )


class FinishedStep(NamedTuple):
    """A step that an earlier attempt finished; `result` is JSON text."""

    name: str
    result: str
    took_s: float | None


class FinishedSteps(NamedTuple):
    """The steps of a job in the order in which they finished, and their total bytes.

    No steps: they are too large, or did not fit besides those of other jobs.
    """

    size: int
    steps: list[FinishedStep]


def read_steps(seqs: Iterable[int], most: int, largest: int) -> Statement[dict[int, FinishedSteps]]:
    """The finished steps of several jobs by sequence number; jobs without steps are left out.

    Those of the first jobs, up to `most` bytes together, or of one job alone up to `largest`.
    """

    def decode(rows: list[Row]) -> dict[int, FinishedSteps]:
        found: dict[int, FinishedSteps] = {}
        for seq, size, name, result, took_s in rows:
            finished = found.setdefault(seq, FinishedSteps(int(size), []))
            if name is not None:
                finished.steps.append(FinishedStep(name, result, took_s))
        return found

    params = {"seqs": list(seqs), "most": most, "largest": largest}
    return Statement("remote/read_steps", decode, params)


def find_ignored(types: Sequence[TypeRecord]) -> Statement[dict[str, list[str]]]:
    """Declared fields that are not in effect, by job type."""
    return Statement(
        "remote/find_ignored",
        lambda rows: {row[0]: row[1] for row in rows},
        {"types": json.dumps([record.to_columns() for record in types])},
    )


def read_types(names: Sequence[str]) -> Statement[dict[str, float | None]]:
    """The published ones of these job types, each with its handler timeout."""
    return Statement(
        "remote/read_types", lambda rows: {row[0]: row[1] for row in rows}, {"names": list(names)}
    )
