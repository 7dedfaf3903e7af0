"""Checks the input of a submit and makes new jobs of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    NamedTuple,
    TypeAlias,
    TypedDict,
    cast,
)
from uuid import UUID

from typing_extensions import TypeVar

from laneway.client.catalog import Catalog, Check
from laneway.client.parents import JobRef, parent_ids
from laneway.domain.approval import NEEDS_SUBMITTER
from laneway.domain.flow import NEEDS_AFTER, NO_AFTER, AfterFailure
from laneway.domain.job import DEFAULT_WORKSPACE, NewJob, new_job_id, new_job_ids
from laneway.domain.not_a_job import not_a_list, problem_of_job
from laneway.domain.payload import JsonText, PayloadLimits, encode
from laneway.domain.suggestion import suggest_option
from laneway.domain.uniqueness import check_unique_by, check_unique_for
from laneway.domain.webhook import check_submitted_type
from laneway.errors import InvalidInput
from laneway.observability import tracing

if TYPE_CHECKING:
    from laneway.store.batch import Entry

R_co = TypeVar("R_co", covariant=True, default=Any)


class FlowableOptions(TypedDict, total=False):
    """The options of one job, alone or in a flow; None stands for the default."""

    priority: int | None
    run_at: datetime | None
    delay: float | timedelta | None
    unique_key: str | None
    tags: Sequence[str]
    max_retries: int | None
    concurrency_key: str | None
    unique_for: float | timedelta | None
    unique_by: Sequence[str] | None
    after: Iterable[JobRef]
    after_failure: AfterFailure | None


class JobOptions(FlowableOptions, total=False):
    """The options of one job; a flow decides these two for its jobs."""

    workspace: str
    created_by: str | None


class SubmitOptions(JobOptions, total=False):
    """The options of a submit: those of its job, its connection and its wake-up."""

    conn: object
    wake: bool | None


class JobFields(JobOptions, total=False):
    """One job of a batch as a mapping; `job_type` is required."""

    job_type: str
    payload: object


@dataclass(frozen=True, slots=True)
class NewJobSpec(Generic[R_co]):
    """One job of a batch; the fields are the parameters of `submit`.

    `ingest.job(path="a.pdf")` makes one whose arguments and result are typed.
    """

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
    unique_for: float | timedelta | None = None
    unique_by: Sequence[str] | None = None
    after: Iterable[JobRef] = NO_AFTER
    after_failure: AfterFailure | None = None
    # Reads the JSON text of the job's result by the return hint of its handler.
    decode: Callable[[str], R_co] | None = field(
        default=None, repr=False, compare=False, kw_only=True
    )


# A tuple is (job_type,), (job_type, payload) or (job_type, payload, options).
Given: TypeAlias = (
    NewJobSpec[Any] | tuple[str] | tuple[str, object] | tuple[str, object, JobOptions] | JobFields
)

_OPTIONS: Final = tuple(JobOptions.__annotations__)
_EDGE_OPTIONS: Final = ("after", "after_failure")
SUB_JOB_OPTIONS: Final = tuple(one for one in _OPTIONS if one not in _EDGE_OPTIONS)


class Request(NamedTuple):
    """One job of a batch, as given."""

    job_type: str
    payload: object
    options: Mapping[str, Any]
    decode: Callable[[str], Any] | None = None


_NO_OPTIONS: Final[Mapping[str, Any]] = {}


def check_options(options: Mapping[str, object], known: Iterable[str] = _OPTIONS) -> None:
    """Refuse names that are not options of `submit`; the error names the nearest one."""
    for name in options:
        if name not in known:
            near = suggest_option(name, SubmitOptions.__annotations__)
            cure = near or f": give an argument of the job in its payload, as in {{{name!r}: …}}"
            raise InvalidInput(name, f"is not an option of submit{cure}")


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
    unique_for: float | timedelta | None = None,
    unique_by: Sequence[str] | None = None,
    after: Iterable[JobRef] = NO_AFTER,
    after_failure: AfterFailure | None = None,
    traceparent: str | None = None,
) -> NewJob:
    """A job ready to be stored; InvalidInput names the field and the rule."""
    handler = catalog.handler(job_type)
    if handler is not None:
        priority = handler.priority if priority is None else priority
        max_retries = handler.max_retries if max_retries is None else max_retries
        if created_by is None and handler.approval is not None and handler.approval.two_person:
            raise InvalidInput("created_by", NEEDS_SUBMITTER)
    default = catalog.uniqueness_of(job_type)
    if unique_by is not None:
        known = None
        if handler is not None and not handler.arguments.accepts_any_name:
            known = handler.arguments.names
        unique_by = check_unique_by(unique_by, known=known)
    if after_failure is not None and after is NO_AFTER:
        raise InvalidInput("after_failure", NEEDS_AFTER)
    return NewJob(
        id=new_job_id(),
        job_type=job_type,
        payload=text,
        priority=priority,
        run_at=None if run_at is None else _utc(run_at),
        delay=delay.total_seconds() if isinstance(delay, timedelta) else delay,
        unique_key=unique_key,
        workspace=workspace,
        tags=read_tags(tags) if tags else (),
        max_retries=max_retries,
        created_by=created_by,
        concurrency_key=concurrency_key,
        unique_for=default.unique_for if unique_for is None else check_unique_for(unique_for),
        unique_by=default.unique_by if unique_by is None else tuple(unique_by),
        traceparent=traceparent,
        needs=catalog.needs(job_type),
        max_age=None if handler is None else handler.max_age_s,
        after=parent_ids(after),
        after_failure=after_failure,
    ).check(limits)


def read_requests(given: Iterable[Given], limits: PayloadLimits) -> list[Request]:
    """The jobs of a batch; refuses too many jobs, and entries that are not jobs."""
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise not_a_list(given)
    chosen: list[object] = list(islice(given, limits.batch_jobs + 1))
    if len(chosen) > limits.batch_jobs:
        raise InvalidInput("jobs", f"a batch holds at most {limits.batch_jobs} jobs")
    return [
        Request(job[0], job[1], _NO_OPTIONS)
        if type(job) is tuple and len(job) == 2
        else read_request(job, i)
        for i, job in enumerate(chosen)
    ]


def types_of(requests: Sequence[Request]) -> frozenset[str]:
    """The job types of a batch, checked."""
    try:
        names = frozenset(job.job_type for job in requests)
        return frozenset(map(check_submitted_type, names))
    except (InvalidInput, TypeError):
        for i, job in enumerate(requests):
            check_submitted_type(job.job_type, f"jobs[{i}].job_type")
        raise


def is_linked(requests: Sequence[Request]) -> bool:
    """Whether a job of the batch comes after others."""
    return any(job.options.get("after") or job.options.get("after_failure") for job in requests)


def has_unique(catalog: Catalog, requests: Sequence[Request]) -> bool:
    """Whether a job of the batch has unique_for or unique_by, given or of its type."""
    return any(
        job.options.get("unique_for") is not None or job.options.get("unique_by") is not None
        for job in requests
    ) or any(any(catalog.uniqueness_of(name)) for name in {job.job_type for job in requests})


def make_entries(
    catalog: Catalog,
    limits: PayloadLimits,
    requests: Sequence[Request],
    ids: Sequence[UUID] | None = None,
) -> Iterator[Entry]:
    """The jobs of a batch as an iterator, under new ids; an error names the index of the job."""
    # Read the catalog now: it may have changed by the time the iterator is consumed.
    checks = {job.job_type: catalog.check_of(job.job_type) for job in requests}
    chosen = new_job_ids(len(requests)) if ids is None else ids
    return _entries(catalog, limits, requests, chosen, checks, tracing.traceparent())


def _entries(
    catalog: Catalog,
    limits: PayloadLimits,
    requests: Sequence[Request],
    ids: Sequence[UUID],
    checks: Mapping[str, Check | None],
    trace: str | None,
) -> Iterator[Entry]:
    templates: dict[str, NewJob] = {}
    size = made = 0
    try:
        for job_id, (job_type, payload, options, _) in zip(ids, requests, strict=True):
            text = encode_arguments(checks[job_type], limits, payload)
            size += len(text) if text.isascii() else len(text.encode())
            if size > limits.batch_bytes:
                break
            if options:
                template = make_job(catalog, limits, job_type, traceparent=trace, **options)
            else:
                if job_type not in templates:
                    templates[job_type] = make_job(catalog, limits, job_type, traceparent=trace)
                template = templates[job_type]
            yield job_id, text, template
            made += 1
    except InvalidInput as error:
        raise InvalidInput(f"jobs[{made}].{error.field}", error.rule) from None
    if size > limits.batch_bytes:
        raise InvalidInput(
            "jobs", f"the payloads of a batch hold at most {limits.batch_bytes} bytes"
        )


def read_sub_job(one: object, i: int) -> Request:
    """One job of `ctx.run_all`, without the options of edges; InvalidInput names its index."""
    request = read_request(one, i)
    for name in _EDGE_OPTIONS:
        if request.options.get(name):
            raise InvalidInput(
                f"jobs[{i}].{name}", "sub-jobs start at once: run later ones in another run_all"
            )
    chosen = {k: v for k, v in request.options.items() if k not in _EDGE_OPTIONS}
    return request._replace(options=chosen)


def read_request(one: object, i: int) -> Request:
    """One job of a batch; InvalidInput names its index."""
    match one:
        case tuple((job_type, payload)):
            return Request(job_type, payload, _NO_OPTIONS)
        case tuple((job_type,)):
            return Request(job_type, None, _NO_OPTIONS)
        case tuple((job_type, payload, Mapping() as options)):
            pass
        case NewJobSpec(job_type=job_type, payload=payload, decode=decode):
            given = {name: getattr(one, name) for name in _OPTIONS}
            return Request(job_type, payload, given, decode)
        case {"job_type": job_type, **rest}:
            payload, options = rest.pop("payload", None), cast("dict[str, Any]", rest)
        case _:
            raise InvalidInput(f"jobs[{i}]", problem_of_job(one))
    try:
        check_options(options)
    except InvalidInput as error:
        raise InvalidInput(f"jobs[{i}]", f"{error.field!r} {error.rule}") from None
    return Request(cast("str", job_type), payload, options)


def _utc(at: Any) -> datetime:
    # NewJob.check refuses values that are not a datetime or have no time zone.
    if not isinstance(at, datetime) or at.utcoffset() is None:
        return cast("datetime", at)
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise InvalidInput("run_at", "is out of range") from None


def read_tags(tags: Any) -> tuple[str, ...]:
    """The tags as given; `NewJob.check` checks each."""
    if isinstance(tags, str) or not isinstance(tags, Iterable):
        raise InvalidInput("tags", "must be a list of texts")
    return tuple(tags)
