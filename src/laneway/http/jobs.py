"""Calls about jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from laneway.domain.bulk import BulkRequest
from laneway.domain.duration import seconds_of
from laneway.domain.explanation import Explanation
from laneway.domain.filter import JobFilter
from laneway.domain.job import DEFAULT_WORKSPACE, Attempt, Job
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
    said,
    words,
)
from laneway.http.models import BulkPreview, BulkRun, JobStanding, Submitted


def submit(
    job_type: str,
    payload: object = None,
    *,
    priority: int | None = None,
    run_at: datetime | None = None,
    delay: float | timedelta | None = None,
    unique_key: str | None = None,
    concurrency_key: str | None = None,
    workspace: str = DEFAULT_WORKSPACE,
    tags: Sequence[str] = (),
    max_retries: int | None = None,
    idempotency_key: str | None = None,
) -> Call[Job]:
    """Submits one job; a live job with the same `unique_key` is answered, marked `duplicate`.

    However often it has to be sent, it is submitted once. `idempotency_key` makes that so for
    another process too, for a day.
    """
    body = said(
        {
            "job_type": job_type,
            "payload": payload,
            "priority": priority,
            "run_at": run_at,
            "delay": None if delay is None else seconds_of(delay, "delay"),
            "unique_key": unique_key,
            "concurrency_key": concurrency_key,
            "max_retries": max_retries,
        }
    )
    body |= {"workspace": workspace, "tags": listed(tags, "tags")}
    return once(Call("POST", "/jobs", _job, (), encoded(body)), idempotency_key)


def submit_many(
    new: Iterable[Mapping[str, object] | tuple[str, object]], *, idempotency_key: str | None = None
) -> Call[list[Submitted]]:
    """Submits up to 1,000 jobs, all or none; answers in the order given.

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


def _submitted(answer: CallResponse) -> list[Submitted]:
    return [decode.read(Submitted, each) for each in answer.body["items"]]


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
    oldest_first: bool = False,
) -> Listing[Job]:
    """Jobs in reach, newest first; all that is given must hold, here or in the filter.

    `oldest_first` is for those that await an approval.
    """
    own = {
        "status": status, "lane": lane, "job_type": job_type, "tag": tag, "worker": worker,
        "workspace": workspace, "since": since, "until": until, "q": q,
        "oldest_first": oldest_first or None,
    }  # fmt: skip
    given = {**wishes(wanted or JobFilter()), **said(own)}
    return Listing("/jobs", decode.job, words(given))


def wishes(wanted: JobFilter) -> dict[str, object]:
    """What a filter says."""
    names = (
        "status", "lane", "job_type", "tag", "worker", "workspace", "since", "until",
        "older_than", "newer_than", "q", "max_cost", "unit",
    )  # fmt: skip
    return said({name: getattr(wanted, name) for name in names})


def get_job(job_id: UUID | str) -> Call[Job]:
    """One job with its newest attempts."""
    return Call("GET", _path(job_id), lambda answer: decode.review(answer.body).job)


def review_job(job_id: UUID | str) -> Call[Review]:
    """One job with its attempts, what was decided about it, and the seal to approve it by."""
    return Call("GET", _path(job_id), lambda answer: decode.review(answer.body))


def list_attempts(job_id: UUID | str) -> Listing[Attempt]:
    """The attempts of a job, newest first."""
    return Listing(_path(job_id, "attempts"), decode.attempt)


def explain_job(job_id: UUID | str) -> Call[Explanation]:
    """Every reason why a job is not running, and when it may start."""
    return Call("GET", _path(job_id, "explain"), decode.body(Explanation))


def cancel_job(job_id: UUID | str, reason: str | None = None) -> Call[Job]:
    """Not yet running: cancelled at once. Running: its worker is asked to stop."""
    return _act(job_id, "cancel", {"reason": reason})


def approve_job(
    job_id: UUID | str, comment: str | None = None, seal: str | None = None
) -> Call[Job]:
    """Lets a job run; with the seal of a review, only if it is still what was shown there."""
    return _act(job_id, "approve", {"comment": comment, "seal": seal})


def reject_job(job_id: UUID | str, reason: str) -> Call[Job]:
    """Cancels a job that awaits an approval."""
    return _act(job_id, "reject", {"reason": reason})


def retry_job(job_id: UUID | str) -> Call[Job]:
    """Lets a failed or cancelled job wait again, with a new retry budget."""
    return _act(job_id, "retry", None)


def delete_job(job_id: UUID | str) -> Call[Job | None]:
    """Cancels a job that waits, and answers it; deletes one that has ended; refuses what runs."""
    return Call(
        "DELETE", _path(job_id), lambda answer: None if answer.body is None else _job(answer)
    )


def cancel_running_job(job_id: UUID | str, reason: str | None = None) -> Call[JobStanding]:
    """Asks the worker of a running job to stop it; a job that is not running is refused."""
    path = f"/admin/workers/jobs/{in_path(checked_id(job_id))}/cancel"
    body = encoded(said({"reason": reason}))
    return once(Call("POST", path, decode.body(JobStanding), (), body))


def reprioritize_job(job_id: UUID | str, priority: int) -> Call[JobStanding]:
    """Gives a waiting job another place in its lane."""
    path = f"/admin/workers/jobs/{in_path(checked_id(job_id))}/priority"
    return Call("PATCH", path, decode.body(JobStanding), (), encoded({"priority": priority}))


def preview_bulk(order: BulkRequest) -> Call[BulkPreview]:
    """Counts the jobs an order is for."""
    return Call(
        "POST", "/jobs/bulk", decode.body(BulkPreview), (), encoded(_order(order, dry_run=True))
    )


def order_bulk(order: BulkRequest, *, upto: int | None = None) -> Call[BulkRun]:
    """Begins a verb on all jobs that match; `get_bulk` tells how far it is.

    With the `upto` of a preview, only on jobs that were there then.
    """
    body = encoded({**_order(order, dry_run=False), **said({"upto": upto})})
    return once(Call("POST", "/jobs/bulk", decode.body(BulkRun), (), body))


def _order(order: BulkRequest, *, dry_run: bool) -> dict[str, object]:
    more = said({"reason": order.reason, "priority": order.priority})
    return {
        "verb": order.verb,
        "filter": wishes(order.wanted),
        "all": order.everything,
        "dry_run": dry_run,
        **more,
    }


def get_bulk(run_id: UUID | str) -> Call[BulkRun]:
    """How far a bulk verb has come."""
    return Call("GET", f"/jobs/bulk/{in_path(checked_id(run_id))}", decode.body(BulkRun))


def _job(answer: CallResponse) -> Job:
    return decode.job(answer.body)


def _act(job_id: UUID | str, verb: str, body: Mapping[str, object] | None) -> Call[Job]:
    sent = None if body is None else encoded(said(body))
    return once(Call("POST", _path(job_id, verb), _job, (), sent))


def _path(job_id: UUID | str, *more: str) -> str:
    return "/".join(("/jobs", in_path(checked_id(job_id)), *more))


def checked_id(given: UUID | str) -> UUID:
    """An id that may go into a path."""
    try:
        return given if isinstance(given, UUID) else UUID(given)
    except (ValueError, AttributeError, TypeError):
        raise InvalidInput("id", "must be a UUID") from None
