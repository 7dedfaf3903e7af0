"""Calls about jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from laneway.domain.bulk import BulkPreview, BulkRequest, BulkRun
from laneway.domain.duration import seconds_of
from laneway.domain.explanation import Explanation
from laneway.domain.filter import JobFilter
from laneway.domain.flow import AfterFailure
from laneway.domain.job import DEFAULT_WORKSPACE, Attempt, Job
from laneway.domain.job_id import IdMatches
from laneway.domain.overview import JobSummary
from laneway.domain.review import Review
from laneway.domain.states import Status
from laneway.errors import InvalidInput
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
from laneway.http.models import Submitted


def submit(
    job_type: str,
    payload: object = None,
    *,
    priority: int | None = None,
    run_at: datetime | None = None,
    delay: float | timedelta | None = None,
    unique_key: str | None = None,
    unique_for: float | timedelta | None = None,
    unique_by: Sequence[str] | None = None,
    concurrency_key: str | None = None,
    workspace: str = DEFAULT_WORKSPACE,
    tags: Sequence[str] = (),
    max_retries: int | None = None,
    after: Iterable[UUID | str] = (),
    after_failure: AfterFailure | None = None,
    idempotency_key: str | None = None,
) -> Call[Job]:
    """Submit one job. A live job with the same `unique_key` is returned, marked `duplicate`.

    It waits until the jobs of `after` have completed.

    Retries of this call submit the job once. An `idempotency_key` extends this to other
    processes, for a day.
    """
    body = without_none(
        {
            "job_type": job_type,
            "payload": payload,
            "priority": priority,
            "run_at": run_at,
            "delay": None if delay is None else seconds_of(delay, "delay"),
            "unique_key": unique_key,
            "unique_for": None if unique_for is None else seconds_of(unique_for, "unique_for"),
            "unique_by": None if unique_by is None else listed(unique_by, "unique_by"),
            "concurrency_key": concurrency_key,
            "max_retries": max_retries,
            "after_failure": after_failure,
        }
    )
    body |= {"workspace": workspace, "tags": listed(tags, "tags")}
    if parents := [str(checked_id(each)) for each in after]:
        body["after"] = parents
    return once(Call("POST", "/jobs", _job, (), encoded(body)), idempotency_key)


def submit_many(
    new: Iterable[Mapping[str, object] | tuple[str, object]], *, idempotency_key: str | None = None
) -> Call[list[Submitted]]:
    """Submit up to 1,000 jobs, all or none; results come in the order given.

    Each is a mapping with the names of `submit`, or `(job_type, payload)`.
    """
    jobs = [_request(one) for one in new]
    call = Call("POST", "/jobs/batch", _submitted, (), encoded({"jobs": jobs}))
    return once(call, idempotency_key)


def _request(given: Mapping[str, object] | tuple[str, object]) -> dict[str, object]:
    if isinstance(given, Mapping):
        return dict(given)
    try:
        job_type, payload = given
    except (TypeError, ValueError):
        raise InvalidInput("jobs", "must be mappings, or pairs of job type and payload") from None
    return {"job_type": job_type, "payload": payload}


def _submitted(response: CallResponse) -> list[Submitted]:
    return [decode.read(Submitted, each) for each in response.body["items"]]


def list_jobs(
    wanted: JobFilter | None = None,
    *,
    status: Status | str | None = None,
    lane: str | None = None,
    job_type: str | None = None,
    tag: str | None = None,
    worker: str | None = None,
    workspace: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    q: str | None = None,
    error_type: str | None = None,
    flow: UUID | str | None = None,
    was_approved: bool | None = None,
    ended_since: datetime | None = None,
    oldest_first: bool = False,
) -> Listing[Job]:
    """List visible jobs that match every argument and the filter, newest first.

    `oldest_first` needs the status `awaiting_approval`.
    """
    fields = {
        "status": status, "lane": lane, "job_type": job_type, "tag": tag, "worker": worker,
        "workspace": workspace, "since": since, "until": until, "q": q,
        "error_type": error_type, "was_approved": was_approved,
        "flow": None if flow is None else str(checked_id(flow)),
        "ended_since": ended_since,
        "oldest_first": oldest_first or None,
    }  # fmt: skip
    given = {**(wanted or JobFilter()).conditions, **without_none(fields)}
    return Listing("/jobs", decode.job, query_params(given))


def find_job_ids(prefixes: Sequence[str]) -> Call[list[IdMatches]]:
    """Find the visible jobs whose ids begin with each prefix, at most five of each."""
    asked = tuple(("prefix", each) for each in listed(prefixes, "prefixes"))
    return Call("GET", "/jobs/ids", _matches, asked)


def _matches(response: CallResponse) -> list[IdMatches]:
    return [decode.read(IdMatches, each) for each in response.body["items"]]


def get_job(job_id: UUID | str) -> Call[Job]:
    """Return one job with its newest attempts."""
    return Call("GET", _path(job_id), lambda response: decode.review(response.body).job)


def review_job(job_id: UUID | str) -> Call[Review]:
    """Return a job with its attempts, its decisions and the seal that approves it."""
    return Call("GET", _path(job_id), lambda response: decode.review(response.body))


def list_attempts(job_id: UUID | str) -> Listing[Attempt]:
    """List the attempts of a job, newest first."""
    return Listing(_path(job_id, "attempts"), decode.attempt)


def explain_job(job_id: UUID | str) -> Call[Explanation]:
    """Return every reason why a job is not running, and an estimate of its start."""
    return Call("GET", _path(job_id, "explain"), decode.body(Explanation))


def cancel_job(job_id: UUID | str, reason: str | None = None) -> Call[Job]:
    """Cancel a waiting job at once, or ask the worker of a running job to stop."""
    return _job_action(job_id, "cancel", {"reason": reason})


def approve_job(
    job_id: UUID | str, comment: str | None = None, seal: str | None = None
) -> Call[Job]:
    """Approve a job; with the seal of a review, only if the job has not changed since."""
    return _job_action(job_id, "approve", {"comment": comment, "seal": seal})


def reject_job(job_id: UUID | str, reason: str) -> Call[Job]:
    """Reject a job that awaits approval; it is cancelled."""
    return _job_action(job_id, "reject", {"reason": reason})


def retry_job(job_id: UUID | str) -> Call[Job]:
    """Queue a failed or cancelled job again, with a new retry budget."""
    return _job_action(job_id, "retry", None)


def run_job_now(job_id: UUID | str) -> Call[Job]:
    """Make a job due that waits for a time: delayed, snoozed, backing off or asleep."""
    return _job_action(job_id, "run_now", None)


def delete_job(job_id: UUID | str) -> Call[Job | None]:
    """Cancel and return a waiting job, or delete a finished one. Running jobs are refused."""
    return Call(
        "DELETE", _path(job_id), lambda response: None if response.body is None else _job(response)
    )


def cancel_running_job(job_id: UUID | str, reason: str | None = None) -> Call[JobSummary]:
    """Ask the worker of a running job to stop it. Other jobs are refused."""
    path = f"/admin/workers/jobs/{in_path(checked_id(job_id))}/cancel"
    body = encoded(without_none({"reason": reason}))
    return once(Call("POST", path, decode.body(JobSummary), (), body))


def reprioritize_job(job_id: UUID | str, priority: int) -> Call[JobSummary]:
    """Change the priority of a waiting job."""
    path = f"/admin/workers/jobs/{in_path(checked_id(job_id))}/priority"
    return Call("PATCH", path, decode.body(JobSummary), (), encoded({"priority": priority}))


def preview_bulk(request: BulkRequest) -> Call[BulkPreview]:
    """Count the jobs that a bulk request matches."""
    return Call(
        "POST",
        "/jobs/bulk",
        decode.body(BulkPreview),
        (),
        encoded(_bulk_body(request, dry_run=True)),
    )


def start_bulk(request: BulkRequest, *, upto: int | None = None) -> Call[BulkRun]:
    """Start a verb on all matching jobs; `get_bulk` returns its progress.

    With the `upto` of a preview, jobs submitted after it are left alone.
    """
    body = encoded({**_bulk_body(request, dry_run=False), **without_none({"upto": upto})})
    return once(Call("POST", "/jobs/bulk", decode.body(BulkRun), (), body))


def _bulk_body(request: BulkRequest, *, dry_run: bool) -> dict[str, object]:
    more = without_none({"reason": request.reason, "priority": request.priority})
    return {
        "verb": request.verb,
        "filter": request.wanted.conditions,
        "all": request.everything,
        "dry_run": dry_run,
        **more,
    }


def get_bulk(run_id: UUID | str) -> Call[BulkRun]:
    """Return the progress of a bulk verb."""
    return Call("GET", f"/jobs/bulk/{in_path(checked_id(run_id))}", decode.body(BulkRun))


def _job(response: CallResponse) -> Job:
    return decode.job(response.body)


def _job_action(job_id: UUID | str, verb: str, body: Mapping[str, object] | None) -> Call[Job]:
    sent = None if body is None else encoded(without_none(body))
    return once(Call("POST", _path(job_id, verb), _job, (), sent))


def _path(job_id: UUID | str, *more: str) -> str:
    return "/".join(("/jobs", in_path(checked_id(job_id)), *more))


def checked_id(given: UUID | str) -> UUID:
    """Parse an id, so that it is safe in a path."""
    try:
        return given if isinstance(given, UUID) else UUID(given)
    except (ValueError, AttributeError, TypeError):
        raise InvalidInput("id", "must be a UUID") from None
