"""Calls that are not declared operations, besides those about jobs and flows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from laneway.domain.change import Change
from laneway.domain.counts import StateCount
from laneway.domain.filter import JobFilter
from laneway.domain.freeze import Freeze
from laneway.domain.limit import Limit, LimitSettings, Tuned, check_limit_name
from laneway.domain.overview import ActiveJob, Gate, LaneStatus, OldSnapshot, Overview, WorkerRow
from laneway.domain.stats import Failures
from laneway.http import decode
from laneway.http.call import (
    Call,
    CallResponse,
    Listing,
    encoded,
    in_path,
    listed,
    once,
    query_params,
    without_none,
)
from laneway.http.declared import call_for, read
from laneway.http.jobs import checked_id
from laneway.http.models import DatabaseState, Health, Me, Readiness
from laneway.operations import workers

_WORKERS = "/admin/workers"


# -- changes ----------------------------------------------------------------------------------


def list_changes(kinds: Sequence[str] = ()) -> Listing[Change]:
    """Changes of lanes, limits and the pause gate, or of the kinds given, newest first."""
    asked = [("kind", each) for each in listed(kinds, "kinds")]
    return Listing("/admin/changes", lambda value: read(Change, value), asked)


# -- workers ----------------------------------------------------------------------------------


def read_status() -> Call[Overview]:
    """Read the lanes with their slots and depths, running jobs, workers and the leader."""
    return Call("GET", f"{_WORKERS}/status", _overview)


def _overview(answer: CallResponse) -> Overview:
    status = answer.body
    return Overview(
        read(Gate, status),
        read(list[LaneStatus], status["lanes"]),
        read(list[ActiveJob], status["active"]),
        read(list[WorkerRow], [*status["workers"], *status.get("silent", ())]),
        read(OldSnapshot | None, status["oldest_transaction"]),
    )


def freeze_lanes(
    lanes: Sequence[str] | None = None, *, deadline: float = 0, or_thaw: bool = False
) -> Call[Freeze]:
    """Drain lanes (None: all); return what still runs in them, after 10 s at the latest."""
    names = None if lanes is None else listed(lanes, "lanes")
    body = {"lanes": names, "deadline": deadline, "or_thaw": or_thaw}
    path = f"{_WORKERS}/freeze"
    return once(Call("POST", path, lambda answer: read(Freeze, answer.body), (), encoded(body)))


def drain_worker(worker_id: UUID | str) -> Call[WorkerRow]:
    """Stop a worker from claiming; its running jobs finish."""
    return _switch(worker_id, "drain")


def resume_worker(worker_id: UUID | str) -> Call[WorkerRow]:
    """Let a drained worker claim again."""
    return _switch(worker_id, "resume")


def _switch(worker_id: UUID | str, verb: str) -> Call[WorkerRow]:
    path = f"/admin/workers/{checked_id(worker_id)}/{verb}"
    return once(Call("POST", path, _worker))


def _worker(response: CallResponse) -> WorkerRow:
    row: WorkerRow = read(WorkerRow, response.body)
    return row


# -- limits -----------------------------------------------------------------------------------


def put_limit(limit: Limit) -> Call[Tuned]:
    """Set a limit to what is given, or create it."""
    path = f"/admin/limits/{in_path(check_limit_name(limit.name))}"
    body = encoded({name: getattr(limit, name) for name in LimitSettings.__annotations__})
    return Call("PUT", path, _tuned, (), body)


def _tuned(answer: CallResponse) -> Tuned:
    return Tuned(read(Limit, answer.body), is_new=answer.status == 201)


# -- counts and failures ----------------------------------------------------------------------


def count_jobs(
    wanted: JobFilter | None = None,
    *,
    lane: str | None = None,
    job_type: str | None = None,
    tag: str | None = None,
    workspace: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Call[list[StateCount]]:
    """Count visible jobs per state, up to about 10,000."""
    own = {
        "lane": lane, "job_type": job_type, "tag": tag, "workspace": workspace, "since": since,
        "until": until,
    }  # fmt: skip
    given = {**(wanted or JobFilter()).conditions, **without_none(own)}
    return Call("GET", "/jobs/counts", _counts, tuple(query_params(given)))


def _counts(response: CallResponse) -> list[StateCount]:
    return [decode.read(StateCount, each) for each in response.body["items"]]


def read_failures(
    *, window_s: int = 3600, lane: str | None = None, job_type: str | None = None, limit: int = 20
) -> Call[Failures]:
    """Read why jobs of visible lanes failed, by job type and error type."""
    asked = workers.read_failures(window_s=window_s, lane=lane, job_type=job_type, top=limit)
    return call_for(asked)


# -- publishers, the database and the server --------------------------------------------------


def forget_publisher(application: str, *, job_type: str | None = None) -> Call[list[str]]:
    """Delete what a retired application published, for one job type or for all."""
    path = f"{_WORKERS}/publishers/{in_path(application)}"
    given = tuple(query_params({"job_type": job_type}))
    return Call("DELETE", path, lambda response: list(response.body["job_types"]), given)


def read_database() -> Call[DatabaseState]:
    """Read versions, sizes and dead rows of the database, and how the replica connects to it."""
    return Call("GET", "/admin/database", lambda response: decode.database(response.body))


def get_me() -> Call[Me]:
    """Return the principal of the token and its permissions."""
    return Call("GET", "/me", decode.body(Me))


def get_health() -> Call[Health]:
    """Check that the server responds."""
    return Call("GET", "/healthz", decode.body(Health))


def get_readiness() -> Call[Readiness]:
    """Check that the server reaches its database and that the schema fits."""
    return Call("GET", "/readyz", decode.body(Readiness))
