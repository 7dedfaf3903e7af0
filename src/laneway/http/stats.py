"""Calls about counts, time series, failures, job types and the database."""

from __future__ import annotations

from datetime import datetime

from laneway.domain.counts import StateCount
from laneway.domain.filter import JobFilter
from laneway.domain.stats import Failures
from laneway.http import decode
from laneway.http.call import Call, CallResponse, in_path, query_params, without_none
from laneway.http.declared import call_for
from laneway.http.models import DatabaseState
from laneway.operations import workers

_PUBLISHERS = "/admin/workers/publishers"


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


def forget_publisher(application: str, *, job_type: str | None = None) -> Call[list[str]]:
    """Delete what a retired application published, for one job type or for all."""
    path = f"{_PUBLISHERS}/{in_path(application)}"
    given = tuple(query_params({"job_type": job_type}))
    return Call("DELETE", path, lambda response: list(response.body["job_types"]), given)


def read_database() -> Call[DatabaseState]:
    """Read versions, sizes and dead rows of the database, and how the replica connects to it."""
    return Call("GET", "/admin/database", lambda response: decode.database(response.body))
