"""Converts messages about waits, sub-jobs and results to our values and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from laneway.client.spec import SUB_JOB_OPTIONS, check_options
from laneway.domain.job import LONGEST_DELAY
from laneway.domain.payload import PayloadLimits
from laneway.domain.text import check_text
from laneway.domain.wait import KEY_BYTES, NAME_BYTES
from laneway.errors import InvalidInput
from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc.messages import MAX_SUB_JOBS, milliseconds, read_json
from laneway.rpc.server.handshake import bounded
from laneway.store.handler_waits import PAGE_BYTES, EndedRow, NewWait, StoredWait

# The most sub-jobs of one wait.
MAX_TOTAL: Final = 100_000
# Answers come with BeginWait.
_STORED: Final = ("name", "kind", "event", "key", "total", "stored")
_OPTION_BYTES: Final = 64 * 1024
# Sub-jobs belong to the submitter of their job.
_OPTIONS: Final = tuple(one for one in SUB_JOB_OPTIONS if one != "created_by")
STATES: Final = {
    None: pb.WAIT_STATE_UNSPECIFIED,
    "open": pb.WAIT_STATE_OPEN,
    "done": pb.WAIT_STATE_DONE,
    "timed_out": pb.WAIT_STATE_TIMED_OUT,
}
STATE_NAMES: Final = {code: name for name, code in STATES.items()}

# A job type, its payload as JSON text, and its options.
SubJob = Sequence[Any]


def write_stored(one: StoredWait) -> pb.StoredWait:
    return pb.StoredWait(**{name: getattr(one, name) for name in _STORED})


def read_stored(one: pb.StoredWait) -> StoredWait:
    given = {name: getattr(one, name) for name in _STORED[2:] if one.HasField(name)}
    return StoredWait(one.name, one.kind, **given)


def write_new(wait: NewWait) -> dict[str, Any]:
    """The fields of a BeginWaitRequest."""
    milliseconds = None if wait.seconds is None else round(wait.seconds * 1000)
    fields = {"name": wait.name, "kind": wait.kind, "duration_ms": milliseconds}
    return fields | {"event": wait.event, "key": wait.key}


def read_new(request: pb.BeginWaitRequest) -> NewWait:
    """The wait that a worker asks for; InvalidInput names the field."""
    name = check_text(request.name, "name", max_bytes=NAME_BYTES)
    seconds = None
    if request.HasField("duration_ms"):
        seconds = milliseconds(request.duration_ms, "duration_ms", LONGEST_DELAY)
    match request.kind:
        case "sleep":
            if seconds is None:
                raise InvalidInput("duration_ms", "must be set for a sleep")
            return NewWait(name, "sleep", seconds)
        case "event":
            event = check_text(request.event, "event", max_bytes=NAME_BYTES)
            key = request.key and check_text(request.key, "key", max_bytes=KEY_BYTES)
            return NewWait(name, "event", seconds, event, key)
        case _:
            raise InvalidInput("kind", "must be event or sleep")


def write_jobs(jobs: Iterable[SubJob]) -> list[pb.SubJob]:
    return [
        pb.SubJob(
            job_type=job_type, payload=payload, options=json.dumps(options) if options else ""
        )
        for job_type, payload, options in jobs
    ]


def read_jobs(request: pb.SubmitSubJobsRequest, limits: PayloadLimits) -> list[SubJob]:
    """The sub-jobs of a request; InvalidInput names the index within the whole wait."""
    check_text(request.name, "name", max_bytes=NAME_BYTES)
    bounded("jobs", len(request.jobs), MAX_SUB_JOBS)
    if not 0 <= request.offset <= request.total <= MAX_TOTAL:
        raise InvalidInput("total", f"must be from offset to {MAX_TOTAL}")
    if request.offset + len(request.jobs) > request.total:
        raise InvalidInput("jobs", "are more than total")
    return [_job(one, i, limits) for i, one in enumerate(request.jobs, request.offset)]


def _job(one: pb.SubJob, i: int, limits: PayloadLimits) -> SubJob:
    payload = read_json(one.payload or "{}", f"jobs[{i}].payload", limits)
    return [one.job_type, payload, _options(one.options, f"jobs[{i}].options")]


def _options(text: str, field: str) -> dict[str, Any]:
    """The options of a sub-job; their values are checked when the job is made."""
    if not text:
        return {}
    if len(text) > _OPTION_BYTES:
        raise InvalidInput(field, f"must be at most {_OPTION_BYTES} characters of JSON")
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput(field, "must be JSON") from None
    if not isinstance(given, dict):
        raise InvalidInput(field, "must be an object")
    try:
        check_options(given, _OPTIONS)
    except InvalidInput as error:
        raise InvalidInput(f"{field}.{error.field}", error.rule) from None
    return {name: _checked(name, value, field) for name, value in given.items()}


def _checked(name: str, value: object, field: str) -> object:
    match name, value:
        case _, None:
            return None
        case (("tags" | "unique_by"), list()) if all(isinstance(one, str) for one in value):
            return value
        case (("unique_key" | "concurrency_key" | "workspace" | "run_at"), str()):
            if name == "run_at":
                try:
                    datetime.fromisoformat(value)
                except ValueError:
                    raise InvalidInput(f"{field}.run_at", "must be an ISO 8601 time") from None
            return value
        case (("delay" | "unique_for"), int() | float()) if not isinstance(value, bool):
            return value
        case (("priority" | "max_retries"), int()) if not isinstance(value, bool):
            return value
    raise InvalidInput(f"{field}.{name}", "has a value of the wrong type")


def write_results(rows: Iterable[EndedRow]) -> list[pb.JobResult]:
    """The first rows that fit into one message; a larger result comes alone."""
    results: list[pb.JobResult] = []
    size = 0
    for row in rows:
        size += 200 + len((row.result or "").encode())
        if results and size > PAGE_BYTES:
            break
        results.append(
            pb.JobResult(
                job_id="" if row.id is None else str(row.id),
                job_type=row.job_type or "",
                name=row.name or "",
                status=row.status or "",
                result=row.result,
            )
        )
    return results


def read_result_row(one: pb.JobResult) -> EndedRow:
    return EndedRow(
        UUID(one.job_id) if one.job_id else None,
        one.job_type or None,
        one.name or None,
        one.status or None,
        one.result if one.HasField("result") else None,
    )
