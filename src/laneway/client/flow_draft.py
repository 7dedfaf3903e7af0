"""The jobs of a flow before they are stored, and their storing: all or nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol
from uuid import UUID

from typing_extensions import ParamSpec, TypeVar

from laneway.client.catalog import Catalog
from laneway.client.parents import JobRef, listed_jobs, parent_id
from laneway.client.spec import (
    FlowableOptions,
    JobOptions,
    NewJobSpec,
    Request,
    SubmitOptions,
    check_options,
    make_entries,
    types_of,
)
from laneway.domain.flow import (
    NEEDS_AFTER,
    NO_AFTER,
    AfterFailure,
    check_after_failure,
    check_flow_name,
    check_size,
)
from laneway.domain.job import DEFAULT_WORKSPACE, new_job_id
from laneway.domain.payload import PayloadLimits
from laneway.errors import InvalidInput

if TYPE_CHECKING:
    from laneway.store.batch import Answer, Entry
    from laneway.store.caller_connection import CallerConnection

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True, default=Any)

_NO_LIMIT: Final = 2**63 - 1


class FlowJobOptions(FlowableOptions, total=False):
    """The options of one job of a flow; `name` is its name within the flow."""

    name: str | None


class HandlerJobOptions(SubmitOptions, total=False):
    """The options of a job of a handler, submitted alone or added to a flow."""

    name: str | None


FLOW_JOB_OPTIONS: Final = tuple(FlowJobOptions.__annotations__)


class JobMaker(Protocol[P, R_co]):
    """A handler: makes jobs of its arguments."""

    def job(self, /, *args: P.args, **kwargs: P.kwargs) -> NewJobSpec[R_co]:
        """A job with these arguments."""

    def flow_job(
        self, args: tuple[Any, ...], given: Mapping[str, Any]
    ) -> tuple[NewJobSpec[R_co], dict[str, Any]]:
        """A job with these arguments, and the options that stood among them."""


class _Added(NamedTuple):
    """One job of a draft. A parent is the position of a job of this flow, or the id of another."""

    request: Request
    name: str | None
    parents: tuple[int | UUID, ...]
    after_failure: AfterFailure | None


@dataclass(slots=True)
class FlowDraft:
    """The jobs of a flow that is not stored yet; each comes after earlier ones."""

    name: str
    workspace: str = DEFAULT_WORKSPACE
    tags: tuple[str, ...] = ()
    created_by: str | None = None
    id: UUID = field(default_factory=new_job_id)
    # Under their ids until they are stored.
    ids: list[UUID] = field(default_factory=list)
    _jobs: list[_Added] = field(default_factory=list)
    _positions: dict[UUID, int] = field(default_factory=dict)
    _names: dict[str, int] = field(default_factory=dict)
    _edges: int = 0

    def add(self, spec: NewJobSpec[Any], options: Mapping[str, Any]) -> UUID:
        """Adds a job; the options given here replace those of the spec."""
        place = f"jobs[{len(self._jobs)}]"
        check_options(options, FLOW_JOB_OPTIONS)
        chosen: dict[str, Any] = {
            name: getattr(spec, name) for name in JobOptions.__annotations__
        } | dict(options)
        if chosen.pop("workspace") not in (DEFAULT_WORKSPACE, self.workspace):
            raise InvalidInput(f"{place}.workspace", "all jobs of a flow are in its workspace")
        chosen.pop("created_by")
        name = chosen.pop("name", None)
        if name is not None:
            name = check_flow_name(name, f"{place}.name")
            if name in self._names:
                raise InvalidInput(
                    f"{place}.name", f"jobs[{self._names[name]}] has the name {name!r}"
                )
        after, after_failure = chosen.pop("after"), chosen.pop("after_failure")
        parents = self._parents(after)
        if after_failure is not None and after is NO_AFTER:
            raise InvalidInput(f"{place}.after_failure", NEEDS_AFTER)
        if after_failure is not None:
            check_after_failure(after_failure, f"{place}.after_failure")
        chosen |= {"workspace": self.workspace, "created_by": self.created_by}
        request = Request(spec.job_type, spec.payload, chosen, spec.decode)
        job_id = new_job_id()
        if name is not None:
            self._names[name] = len(self._jobs)
        self._positions[job_id] = len(self._jobs)
        self._jobs.append(_Added(request, name, parents, after_failure))
        self.ids.append(job_id)
        self._edges += len(parents)
        return job_id

    def _parents(self, after: Iterable[JobRef]) -> tuple[int | UUID, ...]:
        ids = (parent_id(job, i) for i, job in enumerate(listed_jobs(after))) if after else ()
        return tuple(dict.fromkeys(self._positions.get(each, each) for each in ids))

    @property
    def requests(self) -> list[Request]:
        return [job.request for job in self._jobs]

    def check(self) -> frozenset[str]:
        """The job types of its jobs; refuses an empty flow and one beyond the limits."""
        check_size(len(self._jobs), self._edges)
        return types_of(self.requests)

    def entries(self, catalog: Catalog, limits: PayloadLimits) -> list[Entry]:
        """Its jobs as they are stored, without their edges; an error names the index of the job."""
        # The bytes of each batch are bounded below.
        unbounded = replace(limits, batch_bytes=_NO_LIMIT)
        return list(make_entries(catalog, unbounded, self.requests, self.ids))

    def linked(self, entries: Sequence[Entry], first: int, ids: Sequence[UUID]) -> list[Entry]:
        """These entries with their edges; `ids` are those of the jobs stored before."""
        linked = []
        for (job_id, text, like), job in zip(entries, self._jobs[first:], strict=False):
            parents = [ids[each] if isinstance(each, int) else each for each in job.parents]
            # Duplicates may be one and the same job.
            after = tuple(dict.fromkeys(parents))
            edges = replace(like, after=after, after_failure=job.after_failure, name=job.name)
            linked.append((job_id, text, edges))
        return linked

    def batches(
        self, limits: PayloadLimits, entries: Sequence[Entry], unique_types: Collection[str]
    ) -> Iterator[range]:
        """The positions of each batch: bounded, and no job with a parent that may be a duplicate.

        A duplicate has another id than the draft's, which only its own batch returns.
        """
        start = size = 0
        unique: set[int] = set()
        for i, (job, entry) in enumerate(zip(self._jobs, entries, strict=True)):
            is_full = i - start >= limits.batch_jobs or size + len(entry[1]) > limits.batch_bytes
            if i > start and (is_full or not unique.isdisjoint(job.parents)):
                yield range(start, i)
                start, size = i, 0
                unique.clear()
            size += len(entry[1])
            if entry[2].is_unique or job.request.job_type in unique_types:
                unique.add(i)
        yield range(start, len(self._jobs))


async def store_draft(
    conn: CallerConnection, draft: FlowDraft, catalog: Catalog, limits: PayloadLimits
) -> list[Answer]:
    """Stores a flow in the transaction of the connection; its jobs in the order added.

    Everything is checked before the first write: an invalid job must not leave a part of the flow
    in the caller's transaction.
    """
    from laneway.store import flows
    from laneway.store.batch import Batch, call_batch, check_entries, open_batch

    job_types = draft.check()
    await catalog.refresh(job_types, conn.run)
    if conn.is_async:
        entries = await asyncio.to_thread(draft.entries, catalog, limits)
    else:
        entries = draft.entries(catalog, limits)
    batch = Batch(0, job_types, False, ())
    opening = await conn.run(open_batch(batch, can_copy=False))
    check_entries(entries, opening)
    await conn.run(
        flows.create(draft.id, draft.name, draft.workspace, draft.tags, draft.created_by)
    )
    ids = list(draft.ids)
    stored: list[Answer] = []
    unique_types = {name for name, defaults in opening.types.items() if defaults.is_unique}
    for part in draft.batches(limits, entries, unique_types):
        linked = draft.linked([entries[i] for i in part], part.start, ids)
        answers = await call_batch(conn, linked, draft.id)
        ids[part.start : part.stop] = [answer[0] for answer in answers]
        stored += answers
    return stored
