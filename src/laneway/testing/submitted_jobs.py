"""The jobs that a test's code submitted, and assertions about them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, Protocol

from pydantic_core import PydanticSerializationError, to_jsonable_python

from laneway.domain.job import Job
from laneway.errors import InvalidInput
from laneway.store import jobs
from laneway.testing.bound_app import current

# The fields of a job that `assert_submitted` compares by name.
OPTIONS: Final = frozenset(
    {
        "concurrency_key", "created_by", "lane", "max_retries", "priority", "run_at", "status",
        "tags", "unique_key", "workspace",
    }
)  # fmt: skip
_SHOWN: Final = 10


class NamesJobType(Protocol):
    """The function under `@lw.handler`."""

    @property
    def job_type(self) -> str: ...


JobTypeOrName = NamesJobType | str


def name_of(job_type: JobTypeOrName) -> str:
    return job_type if isinstance(job_type, str) else job_type.job_type


def submitted(job_type: JobTypeOrName | None = None) -> list[Job]:
    """The jobs in the test's database, of this type if given, as they are now; oldest first."""
    database = current().database
    name = None if job_type is None else name_of(job_type)
    ids = database.execute(
        "select j.id from laneway.jobs j where %s::text is null or j.job_type = %s order by j.seq",
        name,
        name,
    )
    found = [database.run(jobs.get(row[0])) for row in ids]
    return [job for job in found if job is not None]


def assert_submitted(
    job_type: JobTypeOrName,
    /,
    *,
    count: int | None = None,
    payload: Mapping[str, object] | None = None,
    **given: Any,
) -> list[Job]:
    """Fail unless a job with these arguments was submitted, or exactly `count`; returns them.

    Arguments that are not named may have any value. `priority`, `lane`, `tags`, `unique_key`,
    `concurrency_key`, `run_at`, `max_retries`, `created_by`, `workspace` and `status` are those of
    the job; an argument of that name goes into `payload={…}`.
    """
    __tracebackhide__ = True
    name = name_of(job_type)
    options = {key: value for key, value in given.items() if key in OPTIONS}
    arguments = {key: value for key, value in given.items() if key not in OPTIONS}
    _check_names(name, arguments)
    wanted = {key: _as_stored(value) for key, value in {**arguments, **(payload or {})}.items()}
    made = submitted(name)
    matching = [job for job in made if _matches(job, wanted, options)]
    is_met = len(matching) == count if count is not None else bool(matching)
    if not is_met:
        raise AssertionError(_describe(name, wanted, options, count, matching, made))
    return matching


def _check_names(name: str, arguments: Mapping[str, object]) -> None:
    handler = current().lw.handlers.get(name)
    if handler is None:
        return
    unknown = sorted(arguments.keys() - handler.arguments.names)
    if unknown and not handler.arguments.schema().get("additionalProperties"):
        raise InvalidInput(
            unknown[0],
            f"is neither an argument of {name} ({', '.join(sorted(handler.arguments.names))})"
            f" nor one of count, payload, {', '.join(sorted(OPTIONS))}",
        )


def _as_stored(value: object) -> object:
    """An argument as a payload has it: a datetime is a text there."""
    try:
        return to_jsonable_python(value)
    except PydanticSerializationError:
        # A matcher such as unittest.mock.ANY, which compares itself.
        return value


def _matches(job: Job, wanted: Mapping[str, object], options: Mapping[str, object]) -> bool:
    payload = job.payload if isinstance(job.payload, dict) else {}
    return all(key in payload and value == payload[key] for key, value in wanted.items()) and all(
        _comparable(getattr(job, key)) == _comparable(value) for key, value in options.items()
    )


def _comparable(value: object) -> object:
    return tuple(value) if isinstance(value, (list, tuple)) else value


def _describe(
    name: str,
    wanted: Mapping[str, object],
    options: Mapping[str, object],
    count: int | None,
    matching: list[Job],
    made: list[Job],
) -> str:
    conditions = [f"{key}={value!r}" for key, value in {**wanted, **options}.items()]
    which = f" with {', '.join(conditions)}" if conditions else ""
    if count is None:
        lines = [f"{name} was not submitted{which}"]
    else:
        lines = [f"{name} was submitted {len(matching)} times{which}, expected {count}"]
    if made:
        lines.append(f"submitted jobs of {name}:")
        lines += [f"  {_line(job, options)}" for job in made[:_SHOWN]]
        if len(made) > _SHOWN:
            lines.append(f"  … and {len(made) - _SHOWN} more")
    else:
        others = Counter(job.job_type for job in submitted())
        shown = ", ".join(f"{other} ({n})" for other, n in others.most_common(_SHOWN))
        lines.append(f"submitted job types: {shown or 'none'}")
    lines.append("(a job submitted with conn= counts once that transaction is committed)")
    return "\n".join(lines)


def _line(job: Job, options: Mapping[str, object]) -> str:
    shown = {"status": job.status.value, "priority": job.priority}
    shown |= {key: getattr(job, key) for key in options if key not in shown}
    text = ", ".join(f"{key}={value!r}" for key, value in shown.items())
    return f"{json.dumps(job.payload, ensure_ascii=False, default=str)}  {text}"
