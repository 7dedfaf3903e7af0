"""Jobs, as statements: submit, read, and the operator's actions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields
from datetime import datetime
from typing import Any, NamedTuple, cast
from uuid import UUID

from laneway.domain.counts import StateCount
from laneway.domain.filter import JobFilter
from laneway.domain.job import Attempt, Job, LogLine, NewJob, Progress
from laneway.domain.job_error import JobError
from laneway.domain.permissions import Reach
from laneway.domain.redaction import redact
from laneway.domain.states import Status
from laneway.domain.stored_json import read_stored
from laneway.domain.verb_rules import CancelOnly
from laneway.domain.wait import WaitsFor
from laneway.store.statement import Row, Statement, as_json, one, one_row, scalar

VIEW_COLUMNS = (
    "seq", "id", "job_type", "lane", "status", "priority", "payload", "result", "error",
    "progress", "checkpoint", "analysis", "attempt", "retries", "max_retries", "workspace",
    "tags", "unique_key", "concurrency_key", "created_at", "created_by", "approved_at",
    "approved_by", "expires_at", "run_at", "claimed_by", "worker", "claimed_at", "lease_until",
    "last_progress_at",
    "cancel_requested_at", "cancel_by", "cancel_reason", "started_at", "finished_at", "flow",
    "waits_for",
)  # fmt: skip
# Attempts shown with a job; older ones are read page by page.
MAX_ATTEMPTS = 50
# Log lines read per attempt, and for all attempts of a page.
MAX_LINES_EACH = 200
MAX_LINES = 1000
# Rows that one search reads, with expensive rows counting more: about 30 ms.
SCAN = 30_000
# Jobs that await an approval are read completely, so fewer of them.
SCAN_AWAITING = 1000
_keeps_text: ContextVar[bool] = ContextVar("keeps_text", default=False)


class SubmitResult(NamedTuple):
    """The result of a submit."""

    id: UUID
    status: str
    duplicate: bool


def submit(job: NewJob, *, wake: bool = False) -> Statement[SubmitResult]:
    """Submits one job in the transaction of the connection."""
    return Statement(
        "jobs/submit_job",
        one_row(SubmitResult),
        {"id": job.id, "payload": job.payload, "wake": wake, **_settings(job)}
        | {"after": list(job.after) or None, "after_failure": job.after_failure},
    )


def json_settings(job: NewJob) -> dict[str, Any]:
    """The settings of a new job that are not null, by their names in laneway.submit, as JSON."""
    settings = _settings(job)
    settings["run_at"] = job.run_at and job.run_at.isoformat()
    return {name: value for name, value in settings.items() if value is not None}


def _settings(job: NewJob) -> dict[str, Any]:
    return {
        "job_type": job.job_type,
        "priority": job.priority,
        "run_at": job.run_at,
        "delay": job.delay,
        "unique_key": job.unique_key,
        "concurrency_key": job.concurrency_key,
        "needs": job.needs,
        "max_age": job.max_age,
        "unique_for": job.unique_for,
        "unique_by": None if job.unique_by is None else list(job.unique_by),
        "workspace": job.workspace,
        "tags": list(job.tags) or None,
        "max_retries": job.max_retries,
        "created_by": job.created_by,
        "traceparent": job.traceparent,
    }


class FoundState(NamedTuple):
    """The state an operator's action found (None: unknown job), its subject and its workspace."""

    found_in: str | None
    concerns: Any = None
    workspace: str | None = None


def _found_state(rows: list[Row]) -> FoundState:
    return FoundState(*rows[0]) if rows else FoundState(None)


def cancel(
    job_id: UUID, by: str | None, reason: str | None, only: CancelOnly | None = None
) -> Statement[FoundState]:
    """Cancels a queued job, or requests the worker of a running one to stop (`concerns`: its id).

    `only` restricts it to jobs in that condition.
    """
    params = {"id": job_id, "by": by, "reason": reason and redact(reason), "only": only}
    return Statement("jobs/cancel_job", _found_state, params)


def reprioritize(
    job_id: UUID, priority: int, *, lock_ms: int | None = None
) -> Statement[FoundState]:
    """Changes the priority of a queued job; StatementTimeout if it is locked for `lock_ms`."""
    params = {"id": job_id, "priority": priority, "lock_ms": _milliseconds(lock_ms)}
    return Statement("jobs/reprioritize_job", _found_state, params)


def retry(job_id: UUID, *, lock_ms: int | None = None) -> Statement[FoundState]:
    """Queues a failed or cancelled job again (`concerns`: its job type; None: it waits).

    StatementTimeout if it is locked for `lock_ms`.
    """
    params = {"id": job_id, "lock_ms": _milliseconds(lock_ms)}
    return Statement("jobs/retry_job", _found_state, params)


def _milliseconds(number: int | None) -> str | None:
    return None if number is None else f"{number}ms"


class MadeDue(NamedTuple):
    """The state that `run_now` found (None: unknown job), and the job's `run_at` before and now.

    `found_in` is `due` for a job that waits, but not for a time. `job_type`: the one to wake.
    """

    found_in: str | None
    job_type: str | None = None
    was_due: datetime | None = None
    due: datetime | None = None


def run_now(job_id: UUID) -> Statement[MadeDue]:
    """Makes a job due that waits for its `run_at`."""
    return Statement(
        "jobs/run_job_now",
        lambda rows: MadeDue(*rows[0]) if rows else MadeDue(None),
        {"id": job_id},
    )


def delete(job_id: UUID) -> Statement[UUID | None]:
    """Deletes an ended job; None when it does not exist or has not ended."""
    return Statement("jobs/delete_job", scalar, {"id": job_id})


def wait(job_id: UUID) -> Statement[tuple[str, str | None, str | None] | None]:
    """Status, result and error text of a job, by a cheap query."""
    return Statement(
        "jobs/wait_job",
        cast("Callable[[list[Row]], tuple[str, str | None, str | None] | None]", one),
        {"id": job_id},
    )


@contextmanager
def large_json_as_text() -> Iterator[None]:
    """Keep large payloads, results and checkpoints of jobs as `StoredJson` within this block.

    For callers that only pass them on: parsing a megabyte blocks an event loop for 100 ms.
    """
    token = _keeps_text.set(True)
    try:
        yield
    finally:
        _keeps_text.reset(token)


def _error(value: Any) -> JobError | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        return JobError("Unreadable", str(value))
    return JobError(
        str(value.get("type")),
        str(value.get("message")),
        value.get("traceback"),
        value.get("public") is True,
    )


def read_job(row: Row, *, as_text: bool | None = None) -> Job:
    """Decodes a row of the view; `as_text=None`: as set by `large_json_as_text`."""
    keeps_text = _keeps_text.get() if as_text is None else as_text
    # A submit returns the columns of jobs_as_text, without the last two.
    v = dict(zip(VIEW_COLUMNS, row, strict=False))
    del v["seq"]
    v["cancelled_by"] = v.pop("cancel_by")
    # Reasons from SQL and from workers of older versions are not redacted yet.
    if v["cancel_reason"] is not None:
        v["cancel_reason"] = redact(v["cancel_reason"])
    for name in ("payload", "result", "checkpoint"):
        v[name] = None if v[name] is None else read_stored(v[name], as_text=keeps_text)
    for name in ("error", "progress", "analysis"):
        v[name] = None if v[name] is None else read_stored(v[name], as_text=False)
    progress = v["progress"]
    v["status"] = Status(v["status"])
    v["tags"] = tuple(v["tags"])
    v["error"] = _error(v["error"])
    v["progress"] = Progress(**progress) if progress else None
    waits_for = as_json(v.get("waits_for"))
    v["waits_for"] = WaitsFor.of(waits_for) if waits_for else None
    return Job(**v)


def get(job_id: UUID) -> Statement[Job | None]:
    return Statement(
        "jobs/get_job", lambda rows: read_job(rows[0]) if rows else None, {"id": job_id}
    )


def _attempt(row: Row) -> Attempt:
    (
        attempt, outcome, worker_id, worker, _lane, claimed_at, started_at, finished_at, error, log,
        log_lines,
    ) = row  # fmt: skip
    return Attempt(
        attempt=attempt,
        worker=worker,
        claimed_by=worker_id,
        claimed_at=claimed_at,
        started_at=started_at,
        finished_at=finished_at,
        outcome=None if outcome == "running" else outcome,
        error=_error(as_json(error)),
        log=tuple(
            LogLine(datetime.fromisoformat(n["at"]), n["level"], n["message"]) for n in as_json(log)
        ),
        log_lines=log_lines,
    )


def get_attempts(
    job_id: UUID, *, limit: int = MAX_ATTEMPTS, before: int | None = None
) -> Statement[list[Attempt]]:
    """The newest attempts before one, in order, each with its newest log lines."""
    return Statement(
        "jobs/get_attempts",
        lambda rows: [_attempt(r) for r in rows],
        {
            "id": job_id,
            "limit": limit,
            "before": before if before is not None else 2**31 - 1,
            "lines_each": MAX_LINES_EACH,
            "lines": MAX_LINES,
        },
    )


class JobRows(NamedTuple):
    """A page of jobs, and the start of the next page.

    `looked_back_to`: for a search that stopped before the page was full, the submit time of the
    last job that it read.
    """

    items: list[Job]
    next_cursor: int | None
    looked_back_to: datetime | None = None


def _bounded(wanted: JobFilter, limit: int, before: int | None) -> dict[str, object]:
    params: dict[str, object] = {f.name: getattr(wanted, f.name) for f in fields(wanted)}
    params["status"] = wanted.status.value if wanted.status else None
    params["within"] = reach_json(wanted.within)
    params["private"] = reach_json(wanted.private)
    if wanted.within is not None and wanted.workspace is None:
        # Workspaces have an index; the terms are checked row by row.
        workspaces = {term.workspace for term in wanted.within.terms}
        params["workspace"] = workspaces.pop() if len(workspaces) == 1 else None
    return {**params, "limit": limit, "before": before if before is not None else 2**63 - 1}


def reach_json(within: Reach | None) -> str | None:
    """The terms as JSON; None when they do not restrict anything, to skip the check."""
    return None if within is None or within.is_whole else json.dumps(within.to_list())


def _page(rows: list[Row], limit: int) -> JobRows:
    """Decodes a page; a last row without a job tells where the search stopped."""
    if rows and rows[-1][0] is not None:
        return JobRows([read_job(r[2:]) for r in rows[:-1]], rows[-1][0], rows[-1][1])
    return JobRows([read_job(r[2:]) for r in rows], rows[-1][2] if len(rows) == limit else None)


def listing(
    wanted: JobFilter, *, limit: int = 50, before: int | None = None, scan: int | None = None
) -> Statement[JobRows]:
    """A page of jobs, newest first; an expensive search ends before the page is full."""
    params = {**_bounded(wanted, limit, before), "scan": scan or SCAN}
    return Statement("jobs/list_jobs", lambda rows: _page(rows, limit), params, may_be_large=True)


class MatchingIds(NamedTuple):
    """A page of sequence numbers and ids of jobs, and the start of the next page.

    `looked_back_to` is as in JobRows.
    """

    numbers: list[int]
    ids: list[UUID]
    next_cursor: int | None
    looked_back_to: datetime | None = None


def _found(rows: list[Row], limit: int) -> MatchingIds:
    jobs = [row for row in rows if row[1] is not None]
    is_cut = len(rows) > len(jobs) or len(jobs) == limit
    return MatchingIds(
        [row[0] for row in jobs],
        [row[1] for row in jobs],
        rows[-1][0] if is_cut else None,
        rows[-1][2] if is_cut else None,
    )


def awaiting(
    wanted: JobFilter, *, limit: int = 50, after: int | None = None, scan: int | None = None
) -> Statement[MatchingIds]:
    """One page of jobs that await an approval, oldest first."""
    params = {**_bounded(wanted, limit, None), "after": after if after is not None else 0}
    # No job that awaits an approval has an error, an approval or an end.
    unused = ("error_type", "was_approved", "ended_since", "ended_within")
    for name in ("status", "before", "private", "delayed", *unused):
        del params[name]
    owners = {term.owner for term in wanted.within.terms} if wanted.within is not None else set()
    params["owner"] = owners.pop() if len(owners) == 1 else None
    params["scan"] = scan or SCAN_AWAITING
    return Statement("jobs/list_awaiting", lambda rows: _found(rows, limit), params)


def matching(
    wanted: JobFilter, *, limit: int, before: int | None = None, scan: int | None = None
) -> Statement[MatchingIds]:
    """One page of jobs that match, newest first."""
    params = {**_bounded(wanted, limit, before), "scan": scan or SCAN}
    return Statement("jobs/match_jobs", lambda rows: _found(rows, limit), params)


class Counted(NamedTuple):
    """The number of jobs found; `is_more`: the search stopped early, so more may match."""

    matched: int
    is_more: bool


def count(
    wanted: JobFilter, *, limit: int, before: int | None = None, scan: int | None = None
) -> Statement[Counted]:
    """Counts the jobs that match, up to the limit."""
    return Statement(
        "jobs/count_jobs",
        one_row(Counted),
        {**_bounded(wanted, limit, before), "scan": scan or SCAN},
    )


def count_states(wanted: JobFilter, *, bound: int) -> Statement[list[StateCount]]:
    """Counts matching jobs per state; ignores filters on the text of single jobs."""
    names = (
        "lane", "job_type", "tag", "workspace", "since", "until", "older_than", "newer_than",
    )  # fmt: skip
    return Statement(
        "jobs/count_states",
        lambda rows: [StateCount(Status(r[0]), r[1], r[2]) for r in rows],
        {name: getattr(wanted, name) for name in names}
        | {"within": reach_json(wanted.within), "bound": bound},
    )


def newest() -> Statement[int]:
    """The sequence number of the newest job; 0 without one."""
    return Statement("jobs/find_newest_job", scalar)
