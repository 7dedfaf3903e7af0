"""Calls about how many, how large and how often: counts, failures, job types, the database."""

from __future__ import annotations

from datetime import datetime

from laneway.domain.counts import StateCount
from laneway.domain.filter import JobFilter
from laneway.domain.job_type import PublishedType, Publisher
from laneway.domain.stats import Failures, Series
from laneway.http import decode
from laneway.http.call import Call, CallResponse, Listing, in_path, said, words
from laneway.http.jobs import wishes
from laneway.http.models import DatabaseState

_STATS = "/admin/stats"
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
    """How many of the jobs in reach are in each state, counted up to some 10,000."""
    own = {
        "lane": lane, "job_type": job_type, "tag": tag, "workspace": workspace, "since": since,
        "until": until,
    }  # fmt: skip
    given = {**wishes(wanted or JobFilter()), **said(own)}
    return Call("GET", "/jobs/counts", _counts, tuple(words(given)))


def _counts(answer: CallResponse) -> list[StateCount]:
    return [decode.read(StateCount, each) for each in answer.body["items"]]


def read_stats(
    *,
    window_s: int = 3600,
    bucket_s: int = 60,
    lane: str | None = None,
    job_type: str | None = None,
    by_lane: bool = False,
) -> Call[Series]:
    """Starts, ends, waits and run times over time, of the lanes in reach."""
    given = {
        "window_s": window_s, "bucket_s": bucket_s, "lane": lane, "job_type": job_type,
        "by_lane": by_lane,
    }  # fmt: skip
    return Call("GET", _STATS, lambda answer: decode.series(answer.body), tuple(words(given)))


def read_failures(
    *, window_s: int = 3600, lane: str | None = None, job_type: str | None = None, limit: int = 20
) -> Call[Failures]:
    """What jobs of the lanes in reach failed of, by job type and type of error."""
    given = {"window_s": window_s, "lane": lane, "job_type": job_type, "top": limit}
    path = f"{_STATS}/failures"
    return Call("GET", path, lambda answer: decode.failures(answer.body), tuple(words(given)))


def list_job_types(*, lane: str | None = None) -> Listing[PublishedType]:
    """The published job types of the lanes in reach, by name."""
    return Listing("/admin/workers/types", _published, words({"lane": lane}))


def _published(value: object) -> PublishedType:
    return decode.read(PublishedType, value)


def list_publishers(job_type: str | None = None, stale_only: bool = False) -> Listing[Publisher]:
    """Applications and the job types they publish, by job type."""
    given = words({"job_type": job_type, "stale_only": stale_only or None})
    return Listing(_PUBLISHERS, lambda value: decode.read(Publisher, value), given)


def forget_publisher(application: str, *, job_type: str | None = None) -> Call[list[str]]:
    """Forgets the policy of an application that is gone, for one job type or for all."""
    path = f"{_PUBLISHERS}/{in_path(application)}"
    given = tuple(words({"job_type": job_type}))
    return Call("DELETE", path, lambda answer: list(answer.body["job_types"]), given)


def read_database() -> Call[DatabaseState]:
    """Versions, sizes and dead rows of the database, and how the replica is connected to it."""
    return Call("GET", "/admin/database", lambda answer: decode.database(answer.body))
