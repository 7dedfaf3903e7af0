"""Jobs: submit, read, and the operator's verbs, as statements."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from laneway.domain.stored_json import stored_json
from laneway.domain.verb_rules import CancelOnly
from laneway.store.statement import Row, Statement, one, scalar

VIEW_COLUMNS = (
    "seq", "id", "job_type", "lane", "status", "priority", "payload", "result", "error",
    "progress", "checkpoint", "analysis", "attempt", "retries", "max_retries", "workspace",
    "tags", "unique_key", "concurrency_key", "created_at", "created_by", "approved_at",
    "approved_by", "expires_at", "run_at", "claimed_by", "worker", "claimed_at", "lease_until",
    "last_progress_at",
    "cancel_requested_at", "cancel_by", "cancel_reason", "started_at", "finished_at",
)  # fmt: skip
# Attempts that a job is shown with; the others are read page by page.
MOST_ATTEMPTS = 50
# Log lines that are read of each attempt, and of all attempts of a page.
MOST_LINES_EACH = 200
MOST_LINES = 1000
# How far one search goes: rows it looks at, dearer ones counting for more. Some 30 ms.
LOOK = 30_000
# Of jobs that await an approval, each is read as a whole.
LOOK_AWAITING = 1000
_keeps_text: ContextVar[bool] = ContextVar("keeps_text", default=False)


class SubmitResult(NamedTuple):
    """The answer to a submit."""

    id: UUID
    status: str
    duplicate: bool


def submit(job: NewJob, *, wake: bool = False) -> Statement[SubmitResult]:
    """One job, in the transaction of the connection it runs on."""
    return Statement(
        "jobs/submit_job",
        lambda rows: SubmitResult(*rows[0]),
        {
            "id": job.id,
            "job_type": job.job_type,
            "payload": job.payload,
            "priority": job.priority,
            "run_at": job.run_at,
            "delay": job.delay,
            "unique_key": job.unique_key,
            "concurrency_key": job.concurrency_key,
            "needs": job.needs,
            "max_age": job.max_age,
            "workspace": job.workspace,
            "tags": list(job.tags) or None,
            "max_retries": job.max_retries,
            "created_by": job.created_by,
            "wake": wake,
            "traceparent": job.traceparent,
        },
    )


def _key_params(jobs: Sequence[NewJob]) -> dict[str, object]:
    return {
        "workspaces": [j.workspace for j in jobs],
        "job_types": [j.job_type for j in jobs],
        "keys": [j.unique_key for j in jobs],
    }


def reserve_keys(jobs: Sequence[NewJob], seqs: Sequence[int]) -> Statement[set[int]]:
    """Takes the unique keys of new jobs; answers the numbers that got theirs."""
    return Statement(
        "jobs/reserve_keys",
        lambda rows: {r[0] for r in rows},
        {**_key_params(jobs), "seqs": list(seqs)},
    )


def find_keys(jobs: Sequence[NewJob]) -> Statement[dict[tuple[str, str, str], UUID]]:
    """The live jobs that hold the unique keys of these."""
    return Statement(
        "jobs/find_keys",
        lambda rows: {(r[0], r[1], r[2]): r[3] for r in rows},
        _key_params(jobs),
    )


class FoundState(NamedTuple):
    """The state an operator's verb met (None: no such job) and whom or what it concerns."""

    found_in: str | None
    concerns: Any = None
    workspace: str | None = None


def _met(rows: list[Row]) -> FoundState:
    return FoundState(*rows[0]) if rows else FoundState(None)


def cancel(
    job_id: UUID, by: str | None, reason: str | None, only: CancelOnly | None = None
) -> Statement[FoundState]:
    """Cancels a queued job, or asks the worker of a running one to stop (`concerns`: its id).

    `only` does nothing to a job that is found otherwise.
    """
    given = {"id": job_id, "by": by, "reason": reason and redact(reason), "only": only}
    return Statement("jobs/cancel_job", _met, given)


def reprioritize(job_id: UUID, priority: int) -> Statement[FoundState]:
    return Statement("jobs/reprioritize_job", _met, {"id": job_id, "priority": priority})


def retry(job_id: UUID) -> Statement[FoundState]:
    """Lets a failed or cancelled job wait again (`concerns`: its job type)."""
    return Statement("jobs/retry_job", _met, {"id": job_id})


def delete(job_id: UUID) -> Statement[UUID | None]:
    """Deletes a job that has ended; None when there is none or it has not."""
    return Statement("jobs/delete_job", scalar, {"id": job_id})


def wait(job_id: UUID) -> Statement[tuple[str, str | None, str | None] | None]:
    """Status, result and error text of a job, cheaply."""
    return Statement(
        "jobs/wait_job",
        cast("Callable[[list[Row]], tuple[str, str | None, str | None] | None]", one),
        {"id": job_id},
    )


@contextmanager
def large_json_as_text() -> Iterator[None]:
    """Keep large payloads, results and checkpoints of jobs as `StoredJson` within this block.

    For callers that only pass them on: parsing a megabyte keeps an event loop for 100 ms.
    """
    token = _keeps_text.set(True)
    try:
        yield
    finally:
        _keeps_text.reset(token)


def _read(text: str | None, *, as_text: bool = False) -> Any:
    """The JSON value, or its text where Python cannot read it: one job must not spoil a list."""
    if text is None:
        return None
    kept = stored_json(text) if as_text else None
    if kept is not None:
        return kept
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


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
    """A row of the view as a job; `as_text=None`: as `large_json_as_text` has it here."""
    keeps_text = _keeps_text.get() if as_text is None else as_text
    v = dict(zip(VIEW_COLUMNS, row, strict=True))
    del v["seq"]
    v["cancelled_by"] = v.pop("cancel_by")
    # Our own doors have redacted it; SQL and workers of older versions have not.
    if v["cancel_reason"] is not None:
        v["cancel_reason"] = redact(v["cancel_reason"])
    for name in ("payload", "result", "checkpoint"):
        v[name] = _read(v[name], as_text=keeps_text)
    for name in ("error", "progress", "analysis"):
        v[name] = _read(v[name])
    progress = v["progress"]
    v["status"] = Status(v["status"])
    v["tags"] = tuple(v["tags"])
    v["error"] = _error(v["error"])
    v["progress"] = Progress(**progress) if progress else None
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
        error=_error(error),
        log=tuple(LogLine(datetime.fromisoformat(n["at"]), n["level"], n["message"]) for n in log),
        log_lines=log_lines,
    )


def get_attempts(
    job_id: UUID, *, limit: int = MOST_ATTEMPTS, before: int | None = None
) -> Statement[list[Attempt]]:
    """The newest before an attempt, in order; each with its newest log lines."""
    return Statement(
        "jobs/get_attempts",
        lambda rows: [_attempt(r) for r in rows],
        {
            "id": job_id,
            "limit": limit,
            "before": before if before is not None else 2**31 - 1,
            "lines_each": MOST_LINES_EACH,
            "lines": MOST_LINES,
        },
    )


class JobRows(NamedTuple):
    """Jobs in the order of their list, and where the next page starts.

    `looked_back_to` is when the job was submitted where a search stopped before the page was full.
    """

    items: list[Job]
    next_cursor: int | None
    looked_back_to: datetime | None = None


def _bounded(wanted: JobFilter, limit: int, before: int | None) -> dict[str, object]:
    params: dict[str, object] = {f.name: getattr(wanted, f.name) for f in fields(wanted)}
    params["status"] = wanted.status.value if wanted.status else None
    params["within"] = _terms(wanted.within)
    params["private"] = _terms(wanted.private)
    if wanted.within is not None and wanted.workspace is None:
        # An index knows workspaces, the terms are looked at row by row.
        places = {term.workspace for term in wanted.within.terms}
        params["workspace"] = places.pop() if len(places) == 1 else None
    return {**params, "limit": limit, "before": before if before is not None else 2**63 - 1}


def _terms(within: Reach | None) -> str | None:
    """What narrows nothing must also cost nothing."""
    return None if within is None or within.is_whole else json.dumps(within.to_list())


def _page(rows: list[Row], limit: int) -> JobRows:
    """Two columns say where the search stopped, and only in a last row without a job."""
    if rows and rows[-1][0] is not None:
        return JobRows([read_job(r[2:]) for r in rows[:-1]], rows[-1][0], rows[-1][1])
    return JobRows([read_job(r[2:]) for r in rows], rows[-1][2] if len(rows) == limit else None)


def listing(
    wanted: JobFilter, *, limit: int = 50, before: int | None = None, look: int | None = None
) -> Statement[JobRows]:
    """A page of jobs, newest first; a search that would take long ends before the page is full."""
    params = {**_bounded(wanted, limit, before), "look": look or LOOK}
    return Statement("jobs/list_jobs", lambda rows: _page(rows, limit), params, may_be_large=True)


class MatchingIds(NamedTuple):
    """Numbers and ids of jobs in the order of their list, and where the next page starts.

    `looked_back_to` is as of a Page.
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
    wanted: JobFilter, *, limit: int = 50, after: int | None = None, look: int | None = None
) -> Statement[MatchingIds]:
    """Which jobs await an approval: one page of them, oldest first."""
    params = {**_bounded(wanted, limit, None), "after": after if after is not None else 0}
    del params["status"], params["before"], params["private"]
    owners = {term.owner for term in wanted.within.terms} if wanted.within is not None else set()
    params["owner"] = owners.pop() if len(owners) == 1 else None
    params["look"] = look or LOOK_AWAITING
    return Statement("jobs/list_awaiting", lambda rows: _found(rows, limit), params)


def matching(
    wanted: JobFilter, *, limit: int, before: int | None = None, look: int | None = None
) -> Statement[MatchingIds]:
    """Which jobs match: one page of them, newest first."""
    params = {**_bounded(wanted, limit, before), "look": look or LOOK}
    return Statement("jobs/match_jobs", lambda rows: _found(rows, limit), params)


class Counted(NamedTuple):
    """How many jobs were found; `is_more`: the search stopped, so more may match."""

    matched: int
    is_more: bool


def count(
    wanted: JobFilter, *, limit: int, before: int | None = None, look: int | None = None
) -> Statement[Counted]:
    """How many jobs match, counted up to the limit."""
    return Statement(
        "jobs/count_jobs",
        lambda rows: Counted(*rows[0]),
        {**_bounded(wanted, limit, before), "look": look or LOOK},
    )


def count_states(wanted: JobFilter, *, bound: int) -> Statement[list[StateCount]]:
    """How many jobs that match are in each state; what narrows to one job's words is not asked."""
    names = (
        "lane", "job_type", "tag", "workspace", "since", "until", "older_than", "newer_than",
    )  # fmt: skip
    return Statement(
        "jobs/count_states",
        lambda rows: [StateCount(Status(r[0]), r[1], r[2]) for r in rows],
        {name: getattr(wanted, name) for name in names}
        | {"within": _terms(wanted.within), "bound": bound},
    )


def newest() -> Statement[int]:
    """The number of the newest job there is; 0 without one."""
    return Statement("jobs/newest_job", scalar)
