"""Checks the input of a submit and makes new jobs of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Final, TypeAlias, cast

from laneway.client.catalog import Catalog, Check
from laneway.domain.approval import NEEDS_SUBMITTER
from laneway.domain.job import DEFAULT_WORKSPACE, NewJob, new_job_id, new_job_ids
from laneway.domain.lane import check_job_type
from laneway.domain.payload import JsonText, PayloadLimits, encode
from laneway.errors import InvalidInput
from laneway.observability import tracing
from laneway.store.batch import Entry


@dataclass(frozen=True, slots=True)
class NewJobSpec:
    """One job of a batch; the fields are the parameters of `submit`."""

    job_type: str
    payload: object = None
    priority: int | None = None
    run_at: datetime | None = None
    delay: float | timedelta | None = None
    unique_key: str | None = None
    workspace: str = DEFAULT_WORKSPACE
    tags: Sequence[str] = ()
    max_retries: int | None = None
    created_by: str | None = None
    concurrency_key: str | None = None


# A tuple is (job_type, payload) or (job_type, payload, options); a mapping has the spec's fields.
Given: TypeAlias = NewJobSpec | tuple[Any, ...] | Mapping[str, Any]

_OPTIONS: Final = tuple(field.name for field in fields(NewJobSpec))[2:]


# One job of a batch: job type, payload, options.
Request: TypeAlias = tuple[str, object, Mapping[str, Any]]

_NO_OPTIONS: Final[Mapping[str, Any]] = {}


# Longer payload texts are parsed and checked in a thread, so that the event loop goes on.
_LARGE: Final = 8 * 1024


async def encode_off_loop(check: Check | None, limits: PayloadLimits, payload: object) -> str:
    """Does `encode_arguments` without blocking the event loop for a large text."""
    if check is not None and isinstance(payload, JsonText) and len(payload) > _LARGE:
        return await asyncio.to_thread(encode_arguments, check, limits, payload)
    return encode_arguments(check, limits, payload)


def encode_arguments(check: Check | None, limits: PayloadLimits, payload: object) -> str:
    """The payload as JSON; InvalidInput names the invalid part and the rule."""
    if payload is None:
        payload = {}
    if isinstance(payload, JsonText):
        if check is not None:
            check(json.loads(payload))
        return payload
    text = encode(payload, limits=limits)
    if check is not None:
        try:
            check(payload)
        except InvalidInput:
            # Check what the worker will read: a tuple becomes a list, a model becomes an object.
            check(json.loads(text))
    return text


def make_job(
    catalog: Catalog,
    limits: PayloadLimits,
    job_type: str,
    text: str = "{}",
    *,
    priority: int | None = None,
    run_at: datetime | None = None,
    delay: float | timedelta | None = None,
    unique_key: str | None = None,
    workspace: str = DEFAULT_WORKSPACE,
    tags: Sequence[str] = (),
    max_retries: int | None = None,
    created_by: str | None = None,
    concurrency_key: str | None = None,
    traceparent: str | None = None,
) -> NewJob:
    """A job ready to be stored; InvalidInput names the field and the rule."""
    handler = catalog.handler(job_type)
    if handler is not None:
        priority = handler.priority if priority is None else priority
        max_retries = handler.max_retries if max_retries is None else max_retries
        if created_by is None and handler.approval is not None and handler.approval.two_person:
            raise InvalidInput("created_by", NEEDS_SUBMITTER)
    return NewJob(
        id=new_job_id(),
        job_type=job_type,
        payload=text,
        priority=priority,
        run_at=None if run_at is None else _utc(run_at),
        delay=delay.total_seconds() if isinstance(delay, timedelta) else delay,
        unique_key=unique_key,
        workspace=workspace,
        tags=_tags(tags) if tags else (),
        max_retries=max_retries,
        created_by=created_by,
        concurrency_key=concurrency_key,
        traceparent=traceparent,
        needs=catalog.needs(job_type),
        max_age=None if handler is None else handler.max_age_s,
    ).check(limits)


def read_requests(given: Iterable[Given], limits: PayloadLimits) -> list[Request]:
    """The jobs of a batch; refuses too many jobs, and entries that are not jobs."""
    if isinstance(given, (str, bytes, Mapping)):
        raise InvalidInput("jobs", "must be a list of jobs")
    chosen: list[object] = list(islice(given, limits.batch_jobs + 1))
    if len(chosen) > limits.batch_jobs:
        raise InvalidInput("jobs", f"a batch holds at most {limits.batch_jobs} jobs")
    return [
        (job[0], job[1], _NO_OPTIONS) if type(job) is tuple and len(job) == 2 else _request(job, i)
        for i, job in enumerate(chosen)
    ]


def types_of(requests: Sequence[Request]) -> frozenset[str]:
    """The job types of a batch, checked."""
    try:
        names = frozenset(job_type for job_type, _, _ in requests)
        return frozenset(map(check_job_type, names))
    except (InvalidInput, TypeError):
        for i, (job_type, _, _) in enumerate(requests):
            check_job_type(job_type, f"jobs[{i}].job_type")
        raise


def make_entries(
    catalog: Catalog, limits: PayloadLimits, requests: Sequence[Request]
) -> Iterator[Entry]:
    """The jobs of a batch as an iterator; an error names the index of the job."""
    # Read the catalog now: it may have changed by the time the iterator is consumed.
    trace = tracing.traceparent()
    checks = {job_type: catalog.check_of(job_type) for job_type, _, _ in requests}
    return _entries(catalog, limits, requests, checks, trace)


def _entries(
    catalog: Catalog,
    limits: PayloadLimits,
    requests: Sequence[Request],
    checks: Mapping[str, Check | None],
    trace: str | None,
) -> Iterator[Entry]:
    templates: dict[str, NewJob] = {}
    size = made = 0
    try:
        for job_id, (job_type, payload, options) in zip(
            new_job_ids(len(requests)), requests, strict=True
        ):
            text = encode_arguments(checks[job_type], limits, payload)
            size += len(text) if text.isascii() else len(text.encode())
            if size > limits.batch_bytes:
                break
            if options:
                template = make_job(catalog, limits, job_type, traceparent=trace, **options)
            elif job_type in templates:
                template = templates[job_type]
            else:
                template = templates[job_type] = make_job(
                    catalog, limits, job_type, traceparent=trace
                )
            yield job_id, text, template
            made += 1
    except InvalidInput as error:
        raise InvalidInput(f"jobs[{made}].{error.field}", error.rule) from None
    if size > limits.batch_bytes:
        raise InvalidInput(
            "jobs", f"the payloads of a batch hold at most {limits.batch_bytes} bytes"
        )


def _request(one: object, i: int) -> Request:
    match one:
        case tuple((job_type, payload)):
            return job_type, payload, _NO_OPTIONS
        case tuple((job_type,)):
            return job_type, None, _NO_OPTIONS
        case tuple((job_type, payload, Mapping() as options)):
            pass
        case NewJobSpec(job_type=job_type, payload=payload):
            return job_type, payload, {name: getattr(one, name) for name in _OPTIONS}
        case {"job_type": job_type, **rest}:
            payload, options = rest.pop("payload", None), rest
        case _:
            raise InvalidInput(
                f"jobs[{i}]", "must be a NewJobSpec, (job_type, payload, options) or a mapping"
            )
    for name in options.keys() - set(_OPTIONS):
        raise InvalidInput(f"jobs[{i}]", f"{name!r} is not an option of submit")
    return cast("Request", (job_type, payload, options))


def _utc(at: Any) -> datetime:
    # NewJob.check refuses values that are not a datetime or have no time zone.
    if not isinstance(at, datetime) or at.utcoffset() is None:
        return cast("datetime", at)
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise InvalidInput("run_at", "is out of range") from None


def _tags(tags: Any) -> tuple[str, ...]:
    if isinstance(tags, str) or not isinstance(tags, Iterable):
        raise InvalidInput("tags", "must be a list of texts")
    return tuple(tags)
