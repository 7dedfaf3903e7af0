"""The handshake: the request with which a worker opens its stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple
from uuid import UUID

from laneway.domain.approval import analysis_of
from laneway.domain.job_type_policy import TypeRecord
from laneway.domain.lane import check_job_type
from laneway.domain.payload import PayloadLimits
from laneway.domain.text import check_text
from laneway.domain.webhook import WEBHOOK_TYPE
from laneway.errors import InvalidInput
from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc.declaration import read_declaration

Isolation = Literal["async", "thread", "process"]

MAX_TYPES: Final = 1000
MAX_IN_FLIGHT: Final = 10_000
MAX_HELD: Final = 10_000
NAME_BYTES: Final = 256
# The whole handshake is kept as long as its stream is open.
HANDSHAKE_BYTES: Final = 2 * 1024 * 1024
# Bounds for all its types together: checking schemas takes seconds per megabyte, and each missing
# lane or limit is created by one statement.
DECLARED_BYTES: Final = 1024 * 1024
MAX_LANES: Final = 100
MAX_LIMITS: Final = 100
_ISOLATIONS: Final[dict[int, Isolation]] = {
    pb.ISOLATION_UNSPECIFIED: "async",
    pb.ISOLATION_ASYNC: "async",
    pb.ISOLATION_THREAD: "thread",
    pb.ISOLATION_PROCESS: "process",
}


@dataclass(frozen=True, slots=True)
class ServedType:
    """A job type that a worker has a handler for; `record` if it declares more than the name."""

    name: str
    isolation: Isolation
    has_analysis: bool
    record: TypeRecord | None
    # Why its schema of arguments is refused.
    refused: str | None = None


class ClaimableType(NamedTuple):
    """A job type, or the analyses of one, that a stream claims."""

    job_type: str
    isolation: str


@dataclass(frozen=True, slots=True)
class StreamHandshake:
    """A connecting worker, its job types and its capacity.

    `max_in_flight` 0: it takes no more jobs. 0 of an isolation: only `max_in_flight` bounds it.
    """

    worker_id: UUID
    name: str
    types: tuple[ServedType, ...]
    max_in_flight: int
    max_async: int
    max_threads: int
    max_processes: int
    holds: frozenset[tuple[UUID, int]]
    host: str
    pid: int
    code: str
    memory_bytes: int | None

    def claimable_types(self) -> list[ClaimableType]:
        types = [ClaimableType(one.name, one.isolation) for one in self.types]
        # Analyses run on the worker's event loop or in a thread, whatever the handler needs.
        types += [
            ClaimableType(analysis_of(one.name), "async" if one.isolation == "async" else "thread")
            for one in self.types
            if one.has_analysis
        ]
        return types


def read_handshake(request: pb.StreamJobsRequest, limits: PayloadLimits) -> StreamHandshake:
    """Reads a handshake; InvalidInput names the field and the rule."""
    size = request.ByteSize()
    if size > HANDSHAKE_BYTES:
        raise InvalidInput("request", f"takes {size} bytes; at most {HANDSHAKE_BYTES}")
    worker_id = read_id(request.worker_id, "worker_id")
    most = _count(request.max_in_flight, "max_in_flight", 0, MAX_IN_FLIGHT)
    bounded("job_types", len(request.job_types), MAX_TYPES)
    bounded("holds", len(request.holds), MAX_HELD)
    if not request.job_types:
        raise InvalidInput("job_types", "must name at least one")
    declared = sum(len(one.declaration) for one in request.job_types)
    if declared > DECLARED_BYTES:
        raise InvalidInput("job_types", f"declare {declared} bytes; at most {DECLARED_BYTES}")
    types = tuple(
        _served(one, f"job_types[{i}]", limits) for i, one in enumerate(request.job_types)
    )
    if len({one.name for one in types}) < len(types):
        raise InvalidInput("job_types", "must not name a type twice")
    records = [one.record for one in types if one.record is not None]
    bounded("lanes", len({one.lane for one in records if one.lane}), MAX_LANES)
    bounded("limits", len({name for one in records for name in one.limits}), MAX_LIMITS)
    return StreamHandshake(
        worker_id=worker_id,
        name=_label(request.name, "name") or str(worker_id),
        types=types,
        max_in_flight=most,
        max_async=_count(request.max_async, "max_async", 0, MAX_IN_FLIGHT),
        max_threads=_count(request.max_threads, "max_threads", 0, MAX_IN_FLIGHT),
        max_processes=_count(request.max_processes, "max_processes", 0, MAX_IN_FLIGHT),
        holds=frozenset(
            (read_id(one.job_id, f"holds[{i}].job_id"), one.attempt)
            for i, one in enumerate(request.holds)
        ),
        host=_label(request.host, "host"),
        pid=_count(request.pid, "pid", 0, 2**31 - 1),
        code=_label(request.code, "code"),
        memory_bytes=read_memory(request.memory_bytes),
    )


def _served(given: pb.JobType, field: str, limits: PayloadLimits) -> ServedType:
    name = check_job_type(given.name, f"{field}.name")
    if name == WEBHOOK_TYPE:
        # Otherwise it takes deliveries, and decides how all are approved and retried.
        raise InvalidInput(f"{field}.name", "is Laneway's own, for webhooks")
    isolation = _ISOLATIONS.get(given.isolation)
    if isolation is None:
        raise InvalidInput(f"{field}.isolation", "is not known to this server")
    if not given.declaration:
        return ServedType(name, isolation, given.has_analysis, None)
    record, refused = read_declaration(
        name,
        given.declaration,
        isolation=isolation,
        has_analysis=given.has_analysis,
        limits=limits,
        field=f"{field}.declaration",
    )
    return ServedType(name, isolation, given.has_analysis, record, refused)


def read_id(text: str, field: str, read: Callable[[str], UUID] = UUID) -> UUID:
    """A UUID in its usual form of 36 characters."""
    try:
        if len(text) == 36:
            return read(text)
    except ValueError:
        pass
    raise InvalidInput(field, "must be a UUID")


def read_memory(size: int) -> int | None:
    """Resident memory; None if it was not sent."""
    if size < 0:
        raise InvalidInput("memory_bytes", "must be 0 or more")
    return size or None


def bounded(field: str, count: int, most: int) -> None:
    """Refuses more parts than one call may carry."""
    if count > most:
        raise InvalidInput(field, f"are {count}; at most {most} in one call")


def _count(value: int, field: str, low: int, high: int) -> int:
    if not low <= value <= high:
        raise InvalidInput(field, f"must be from {low} to {high}")
    return value


def _label(text: str, field: str) -> str:
    """A printable text on one line."""
    if not text:
        return ""
    check_text(text, field, max_bytes=NAME_BYTES)
    if not text.isprintable():
        raise InvalidInput(field, "must be printable text without control characters")
    return text
