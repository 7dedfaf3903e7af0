"""Jobs as results of tasks."""

from __future__ import annotations

import builtins
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.utils import timezone

import laneway.errors
from laneway.domain.job import Job
from laneway.domain.job_error import JobError
from laneway.domain.states import Status
from laneway.integrations.django.framework import Task, TaskError, TaskResult, TaskResultStatus

_STATUSES: Final = {
    Status.RUNNING: TaskResultStatus.RUNNING,
    Status.COMPLETED: TaskResultStatus.SUCCESSFUL,
    Status.FAILED: TaskResultStatus.FAILED,
    Status.CANCELLED: TaskResultStatus.FAILED,
}


def new_result(task: Task, job_id: str, alias: str, payload: dict[str, Any]) -> TaskResult:
    """The result of a task that was just enqueued."""
    return TaskResult(
        task=task,
        id=job_id,
        status=TaskResultStatus.READY,
        enqueued_at=timezone.now(),
        started_at=None,
        finished_at=None,
        last_attempted_at=None,
        backend=alias,
        errors=[],
        worker_ids=[],
        **payload,
    )


def result_of(job: Job, task: Task, alias: str) -> TaskResult:
    """The job as the result of its task."""
    payload = job.payload if isinstance(job.payload, dict) else {}
    result = TaskResult(
        task=task.using(priority=job.priority),
        id=str(job.id),
        # All other states wait for something.
        status=_STATUSES.get(job.status, TaskResultStatus.READY),
        enqueued_at=_time(job.created_at),
        started_at=_time(job.attempts[0].started_at if job.attempts else None),
        finished_at=_time(job.finished_at),
        last_attempted_at=_time(job.attempts[-1].claimed_at if job.attempts else None),
        args=payload.get("args", []),
        kwargs=payload.get("kwargs", {}),
        backend=alias,
        errors=[error_of(each.error) for each in job.attempts if each.error is not None],
        worker_ids=[str(each.worker or each.claimed_by) for each in job.attempts],
    )
    if job.status is Status.COMPLETED:
        object.__setattr__(result, "_return_value", job.result)
    return result


def error_of(error: JobError) -> TaskError:
    """The error with the path of its class, which only its traceback names.

    Django imports the class. A class that cannot be imported is replaced by a base of it.
    """
    if error.traceback is None:  # an error of Laneway, such as WorkerLost
        name = error.type if hasattr(laneway.errors, error.type) else "LanewayError"
        text = f"{error.type}: {error.message}"
        return TaskError(exception_class_path=f"laneway.errors.{name}", traceback=text)
    heads = (line.partition(":")[0] for line in reversed(error.traceback.splitlines()))
    name = error.type if hasattr(builtins, error.type) else "Exception"
    path = next((each for each in heads if _is_path(each, error.type)), f"builtins.{name}")
    return TaskError(exception_class_path=path, traceback=error.traceback)


def _is_path(text: str, name: str) -> bool:
    return text.endswith(f".{name}") and text.replace(".", "").isidentifier()


def _time(value: datetime | None) -> datetime | None:
    """The time as the project keeps times: without a zone if USE_TZ is off."""
    if value is None or settings.USE_TZ or timezone.is_naive(value):
        return value
    naive: datetime = timezone.make_naive(value)
    return naive
