"""What is handed to a submit, checked and turned into a NewJob."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Final, TypeAlias

from laneway.client.catalog import Catalog
from laneway.domain.job import DEFAULT_WORKSPACE, NewJob, new_job_id
from laneway.domain.payload import PayloadLimits, check_batch, encode
from laneway.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class NewJobSpec:
    """One job of a batch, in the words of `submit`."""

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


# A tuple is (job_type, payload) or (job_type, payload, options); a mapping has the spec's names.
Given: TypeAlias = NewJobSpec | tuple[Any, ...] | Mapping[str, Any]

_NAMES: Final = frozenset(field.name for field in fields(NewJobSpec))


def make_job(
    catalog: Catalog,
    limits: PayloadLimits,
    job_type: str,
    payload: object = None,
    priority: int | None = None,
    run_at: datetime | None = None,
    delay: float | timedelta | None = None,
    unique_key: str | None = None,
    workspace: str = DEFAULT_WORKSPACE,
    tags: Sequence[str] = (),
    max_retries: int | None = None,
    created_by: str | None = None,
) -> NewJob:
    """A job ready to be stored, or InvalidInput with the field and the rule it breaks."""
    if payload is None:
        payload = {}
    text = encode(payload, limits=limits)
    handler = catalog.handler(job_type)
    if handler is not None:
        priority = handler.priority if priority is None else priority
        max_retries = handler.max_retries if max_retries is None else max_retries
    job = NewJob(
        id=new_job_id(),
        job_type=job_type,
        payload=text,
        priority=priority,
        run_at=run_at if run_at is None else _utc(run_at),
        delay=delay.total_seconds() if isinstance(delay, timedelta) else delay,
        unique_key=unique_key,
        workspace=workspace,
        tags=_tags(tags) if tags else (),
        max_retries=max_retries,
        created_by=created_by,
    ).check(limits)
    catalog.check(job_type, payload, text)
    return job


def read_batch(given: Iterable[Given], limits: PayloadLimits) -> list[dict[str, Any]]:
    """The arguments of `make_job` for each job; refuses a batch with too many."""
    if isinstance(given, (str, bytes, Mapping)):
        raise InvalidInput("jobs", "must be a list of jobs")
    chosen = list(islice(given, limits.batch_jobs + 1))
    if len(chosen) > limits.batch_jobs:
        raise InvalidInput("jobs", f"a batch holds at most {limits.batch_jobs} jobs")
    read = []
    for i, one in enumerate(chosen):
        if isinstance(one, tuple):
            spec = _from_tuple(one, i)
        elif isinstance(one, NewJobSpec):
            spec = asdict(one) | {"payload": one.payload}
        elif isinstance(one, Mapping):
            spec = dict(one)
        else:
            spec = {}
        if "job_type" not in spec:
            raise InvalidInput(
                f"jobs[{i}]", "must be a NewJobSpec, (job_type, payload, options) or a mapping"
            )
        if not isinstance(spec["job_type"], str):
            raise InvalidInput(f"jobs[{i}].job_type", "must be text")
        for name in spec.keys() - _NAMES:
            raise InvalidInput(f"jobs[{i}]", f"{name!r} is nothing a submit takes")
        read.append(spec)
    return read


def make_batch(
    catalog: Catalog, limits: PayloadLimits, specs: Sequence[Mapping[str, Any]]
) -> list[NewJob]:
    """The jobs of a batch; the error of one says which."""
    made: list[NewJob] = []
    try:
        for spec in specs:
            made.append(make_job(catalog, limits, **spec))  # noqa: PERF401 -- its length is told
    except InvalidInput as error:
        raise InvalidInput(f"jobs[{len(made)}].{error.field}", error.rule) from None
    check_batch([job.payload for job in made], limits)
    return made


def _from_tuple(one: tuple[Any, ...], i: int) -> dict[str, Any]:
    match one:
        case (job_type,):
            return {"job_type": job_type}
        case (job_type, payload):
            return {"job_type": job_type, "payload": payload}
        case (job_type, payload, Mapping() as options) if not options.keys() & {
            "job_type",
            "payload",
        }:
            return {"job_type": job_type, "payload": payload, **options}
    raise InvalidInput(f"jobs[{i}]", "a tuple is (job_type, payload, options)")


def _utc(at: datetime) -> datetime:
    # Left to NewJob.check to refuse when it is no datetime or has no zone.
    if not isinstance(at, datetime) or at.utcoffset() is None:
        return at
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise InvalidInput("run_at", "is out of range") from None


def _tags(tags: Sequence[str]) -> tuple[str, ...]:
    if isinstance(tags, str) or not isinstance(tags, Iterable):
        raise InvalidInput("tags", "must be a list of texts")
    return tuple(tags)
