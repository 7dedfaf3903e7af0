"""The jobs that a job comes after, as `after=` names them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Protocol, TypeAlias, cast
from uuid import UUID

from laneway.domain.flow import Flow
from laneway.domain.text import shown
from laneway.errors import InvalidInput

_IS_FLOW: Final = "is a flow, not a job: write after=flow.jobs, or `await flow.wait()` before"


class HasJobId(Protocol):
    """A job, or the handle of one."""

    @property
    def id(self) -> UUID: ...


# A job that another one comes after.
JobRef: TypeAlias = UUID | str | HasJobId


def parent_ids(after: Iterable[JobRef]) -> tuple[UUID, ...]:
    """The ids of the jobs that a job comes after, each once."""
    if not after:
        return ()
    return tuple(dict.fromkeys(parent_id(job, i) for i, job in enumerate(listed_jobs(after))))


def listed_jobs(after: Iterable[JobRef]) -> Iterable[JobRef]:
    """The jobs; InvalidInput unless they are a list."""
    if isinstance(after, (str, bytes, Mapping)) or not isinstance(after, Iterable):
        raise InvalidInput("after", "must be a list of jobs: write after=[job]")
    return after


def parent_id(job: JobRef, i: int) -> UUID:
    """The id of one job of `after`."""
    given = job if isinstance(job, (str, UUID)) else getattr(job, "id", None)
    if isinstance(job, Flow) or getattr(type(job), "is_flow", False):
        raise InvalidInput(f"after[{i}]", _IS_FLOW)
    try:
        return given if isinstance(given, UUID) else UUID(cast("str", given))
    except (ValueError, AttributeError, TypeError):
        raise InvalidInput(
            f"after[{i}]", f"must be a job, its handle or its id, not {shown(job)}"
        ) from None
