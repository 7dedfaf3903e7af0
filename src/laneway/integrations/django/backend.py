"""The backend of Django's tasks that stores them as jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.core import checks
from django.utils import timezone

from laneway.app.laneway import Laneway
from laneway.errors import InvalidInput, NotFound
from laneway.integrations.django.application import Application, application_of
from laneway.integrations.django.framework import (
    BaseTaskBackend,
    Task,
    TaskResult,
    TaskResultDoesNotExist,
    normalize_json,
    task_enqueued,
)
from laneway.integrations.django.results import new_result, result_of


@dataclass(frozen=True, slots=True, kw_only=True)
class LanewayTask(Task):  # type: ignore[misc]
    """A task with options of `@lw.handler`: `@task(laneway={"timeout": 60, "max_retries": 0})`."""

    laneway: Mapping[str, Any] = field(default_factory=dict, hash=False)


class LanewayBackend(BaseTaskBackend):  # type: ignore[misc]
    """Stores tasks as jobs; `manage.py laneway_worker` runs them."""

    task_class = LanewayTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self.application: Application = application_of(self)

    @property
    def lw(self) -> Laneway:
        """The Laneway instance, to declare handlers or look at jobs."""
        return self.application.lw

    def validate_task(self, task: Task) -> None:
        super().validate_task(task)
        self.application.declare(task)

    def enqueue(self, task: Task, args: Iterable[Any], kwargs: Mapping[str, Any]) -> TaskResult:
        """Submit the job of a task with the current transaction of the database."""
        self.validate_task(task)
        payload = {"args": normalize_json(list(args)), "kwargs": normalize_json(dict(kwargs))}
        run_at = task.run_after
        if run_at is not None and timezone.is_naive(run_at):  # USE_TZ is off
            run_at = timezone.make_aware(run_at)
        job_id = self.application.submit(task, payload, priority=task.priority, run_at=run_at)
        result = new_result(task, str(job_id), self.alias, payload)
        task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> TaskResult:
        """The job as the result of its task."""
        try:
            job = self.application.get(result_id)
        except (InvalidInput, NotFound) as error:
            raise TaskResultDoesNotExist(result_id) from error
        task = self.application.task_of(job.job_type)
        if task is None:
            raise TaskResultDoesNotExist(result_id)
        return result_of(job, task, self.alias)

    def check(self, **kwargs: Any) -> list[checks.CheckMessage]:
        """Mistakes in the settings, for Django's system checks."""
        found = self.application.problems()
        return [
            checks.Error(text, id="laneway.E001", obj=f"TASKS[{self.alias!r}]") for text in found
        ]
