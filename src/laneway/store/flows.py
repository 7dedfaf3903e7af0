"""Flows, as statements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from laneway.domain.flow import Flow, FlowCounts, FlowFilter, FlowJob, FlowStatus
from laneway.domain.permissions import Reach
from laneway.domain.redaction import redact
from laneway.domain.review import JobEdges
from laneway.domain.states import Status
from laneway.store.jobs import reach_json
from laneway.store.statement import Row, Statement, nothing, scalar

_ANY = FlowFilter()
# Jobs named of each kind, and jobs of a flow read to find those that come after one.
EDGES_SHOWN: Final = 100
EDGES_LOOKED_AT: Final = 10_000


def create(
    flow_id: UUID, name: str, workspace: str, tags: Sequence[str], created_by: str | None
) -> Statement[None]:
    """Creates a flow without jobs, in the transaction that stores its jobs."""
    params = {"id": flow_id, "name": name, "workspace": workspace, "created_by": created_by}
    return Statement("flows/create_flow", nothing, {**params, "tags": list(tags) or None})


class FlowRows(NamedTuple):
    """A page of flows, and the start of the next page."""

    items: list[Flow]
    next_cursor: int | None


def get(flow_id: UUID) -> Statement[Flow | None]:
    """One flow with its counts."""
    return Statement(
        "flows/list_flows",
        lambda rows: _flow(rows[0]) if rows else None,
        _params(_ANY, flow_id, None, 1, None),
    )


def listing(
    wanted: FlowFilter, *, within: Reach | None, limit: int, before: int | None
) -> Statement[FlowRows]:
    """A page of flows, newest first; a long search ends before the page is full."""

    def decode(rows: list[Row]) -> FlowRows:
        found = [row for row in rows if row[1] is not None]
        is_cut = len(rows) > len(found) or len(found) == limit
        return FlowRows([_flow(row) for row in found], rows[-1][0] if is_cut else None)

    return Statement("flows/list_flows", decode, _params(wanted, None, within, limit, before))


def edges(job_id: UUID) -> Statement[JobEdges]:
    """The jobs around one job, by their ids."""
    params = {"id": job_id, "most": EDGES_SHOWN, "look": EDGES_LOOKED_AT}
    return Statement("flows/read_edges", _edges, params)


def _edges(rows: list[Row]) -> JobEdges:
    if not rows:
        return JobEdges()
    after, after_failure, owner, followers = rows[0]
    return JobEdges(tuple(after), after_failure, owner, tuple(followers))


def _params(
    wanted: FlowFilter, flow_id: UUID | None, within: Reach | None, limit: int, before: int | None
) -> dict[str, object]:
    return {
        "id": flow_id,
        "name": wanted.name,
        "status": wanted.status and wanted.status.value,
        "tag": wanted.tag,
        "workspace": wanted.workspace,
        "within": reach_json(within),
        "before": before,
        "limit": limit,
    }


def _flow(row: Row) -> Flow:
    _, flow_id, name, workspace, tags, status, created_at, created_by, ended_at, *counts = row
    return Flow(
        id=flow_id,
        name=name,
        workspace=workspace,
        tags=tuple(tags),
        status=FlowStatus(status),
        created_at=created_at,
        created_by=created_by,
        finished_at=ended_at,
        counts=FlowCounts(*counts),
    )


class FlowJobs(NamedTuple):
    """A page of a flow's jobs, and the start of the next page."""

    items: list[FlowJob]
    next_cursor: int | None


def states(flow_id: UUID, *, limit: int, after: int | None) -> Statement[FlowJobs]:
    """A page of the jobs of a flow, in the order submitted; shorter where they have many edges."""

    def decode(rows: list[Row]) -> FlowJobs:
        last = rows[-1][0] if rows and (len(rows) == limit or rows[-1][-1]) else None
        return FlowJobs([_job(row) for row in rows], last)

    params = {"id": flow_id, "limit": limit, "after": after or 0}
    return Statement("flows/read_states", decode, params, may_be_large=True)


def _job(row: Row) -> FlowJob:
    (
        _, job_id, name, job_type, status, priority, attempt, after, after_failure, owner,
        created_at, started_at, finished_at, error_type, _,
    ) = row  # fmt: skip
    return FlowJob(
        id=job_id,
        name=name,
        job_type=job_type,
        status=Status(status),
        priority=priority,
        attempt=attempt,
        after=tuple(after),
        after_failure=after_failure,
        owner=owner,
        created_at=created_at,
        started_at=started_at,
        finished_at=finished_at,
        error_type=error_type,
    )


class CancelledJobs(NamedTuple):
    """One batch of a cancel: the number of jobs cancelled, and of those asked to stop.

    `before`: where the next batch begins; None: it was the last. `skipped`: jobs that another
    transaction has locked.
    """

    cancelled: int
    requested: int
    before: int | None
    workers: list[UUID] | None
    skipped: list[int] | None


def cancel(
    flow_id: UUID,
    by: str,
    reason: str | None,
    *,
    limit: int,
    before: int | None = None,
    only: Sequence[int] | None = None,
    skipped: Sequence[int] = (),
) -> Statement[CancelledJobs]:
    """Cancels a batch of jobs, newest first; `only`: these, which were skipped before.

    `skipped`: the other jobs that were skipped and not cancelled since.
    """
    params: dict[str, object] = {"id": flow_id, "by": by, "reason": reason and redact(reason)}
    params |= {"limit": limit, "before": before, "only": None if only is None else list(only)}
    params["skipped"] = list(skipped) or None
    return Statement("flows/cancel_flow", lambda rows: CancelledJobs(*rows[0]), params)


class RetriedJobs(NamedTuple):
    """One batch of a retry: jobs queued again, where the next batch begins, types to wake.

    `is_busy`: it stopped before a job that another transaction has locked.
    """

    retried: int
    after: int | None
    wakes: list[str] | None
    is_busy: bool


def retry(flow_id: UUID, *, limit: int, after: int) -> Statement[RetriedJobs]:
    """Retries a batch of jobs, oldest first."""
    return Statement(
        "flows/retry_flow",
        lambda rows: RetriedJobs(*rows[0]),
        {"id": flow_id, "limit": limit, "after": after},
    )


def is_left_alone(job_id: UUID) -> Statement[bool]:
    """Whether a retry of its flow leaves a failed or cancelled job as it is."""
    return Statement("flows/is_left_alone", lambda rows: bool(scalar(rows)), {"id": job_id})


class WaitingJobs(NamedTuple):
    """Waiting jobs of one reason, and how long the first of them has waited."""

    reason: str
    counted: int
    oldest_s: float | None


class OpenWork(NamedTuple):
    """Waiting jobs by reason, and flows that have not ended; each counted up to a bound."""

    waiting: list[WaitingJobs]
    flows: int


def count_open(*, bound: int) -> Statement[OpenWork]:
    def decode(rows: list[Row]) -> OpenWork:
        return OpenWork([WaitingJobs(*row[:3]) for row in rows], rows[0][3])

    return Statement("flows/count_open", decode, {"bound": bound})
