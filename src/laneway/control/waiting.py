"""Reasons of a job in `waiting`: other jobs, an event, or a time that its handler asked for."""

from __future__ import annotations

import shlex
from datetime import datetime

from laneway.control.worker_reasons import moment
from laneway.domain.explanation import Reason
from laneway.domain.job import DEFAULT_WORKSPACE, Job
from laneway.domain.states import Status, label_of
from laneway.domain.wait import WaitsFor
from laneway.store.parents import OpenParent, OpenParents

# Not JSON, so that the command is refused until it is replaced by the payload.
_PAYLOAD = "{…}"
_ENDED = frozenset({Status.FAILED.value, Status.CANCELLED.value})


def waiting_reasons(job: Job, open_parents: OpenParents | None, now: datetime) -> list[Reason]:
    """The reasons, the most decisive first; `now` by the database's clock."""
    wait = job.waits_for
    if wait is not None and wait.kind == "event":
        return [_event(job, wait, now)]
    if wait is not None and wait.kind == "sleep":
        return [_sleep(job, wait, now)]
    if open_parents is None:
        return [Reason("waits_for_jobs", "all that it waits for has ended: it is queued shortly")]
    is_owner = wait is not None and wait.kind == "sub_jobs"
    return [
        *_circle(open_parents),
        *_held(open_parents),
        _jobs(open_parents, "sub-job" if is_owner else "job"),
    ]


def _circle(found: OpenParents) -> list[Reason]:
    if not found.circle:
        return []
    path = " waits for ".join(map(str, found.circle))
    return [Reason("circle", f"it waits for itself: {path}; cancel one of them")]


def _held(found: OpenParents) -> list[Reason]:
    return [
        Reason(
            "held",
            f"job {one.id} {_ended_words(one)}: this one waits until it is retried and completes "
            f"(`laneway jobs retry {one.id}`)",
        )
        for one in found.first
        # With `cancel` only a job that was retried alone still waits.
        if one.rule in ("hold", "cancel") and one.status in _ENDED
    ]


def _ended_words(one: OpenParent) -> str:
    return "failed" if one.status == Status.FAILED else "was cancelled"


def _jobs(found: OpenParents, noun: str) -> Reason:
    of = f"{found.missing} of {found.total}" if found.total > found.missing else str(found.missing)
    nouns = noun if found.total == 1 else f"{noun}s"
    named = ", ".join(f"{one.id} ({_state_words(one)})" for one in found.first)
    more = found.missing - len(found.first)
    rest = f" and {more} more" if more > 0 else ""
    code = "waits_for_sub_jobs" if noun == "sub-job" else "waits_for_jobs"
    return Reason(code, f"it waits for {of} {nouns}: {named}{rest}")


def _state_words(one: OpenParent) -> str:
    return label_of(Status(one.status), None).replace("_", " ")


def _event(job: Job, wait: WaitsFor, now: datetime) -> Reason:
    key = f" with the key {wait.key}" if wait.key else ""
    text = f"it waits for the event {wait.event}{key}"
    if wait.until and wait.is_over(now):
        return Reason("waits_for_event", f"{text}; {_over(wait.until)}")
    until = f", until {moment(wait.until)} at the latest" if wait.until else ""
    # Names and keys may come from payloads: the command must not run what stands in them.
    options = ["--key", wait.key] if wait.key else []
    if job.workspace != DEFAULT_WORKSPACE:
        options += ["--workspace", job.workspace]
    command = shlex.join(["laneway", "events", "send", wait.event or "", _PAYLOAD, *options])
    return Reason("waits_for_event", f"{text}{until} (`{command}`)")


def _sleep(job: Job, wait: WaitsFor, now: datetime) -> Reason:
    if wait.until and wait.is_over(now):
        return Reason("sleeping", f"its handler sleeps; {_over(wait.until)}")
    until = f" until {moment(wait.until)}" if wait.until else ""
    return Reason("sleeping", f"its handler sleeps{until} (`laneway jobs run-now {job.id}`)")


def _over(until: datetime) -> str:
    return f"its time is over since {moment(until)}: a worker that can run it continues it"
