"""Runs tasks in a worker, with Django's signals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from inspect import iscoroutinefunction
from traceback import format_exception
from typing import TYPE_CHECKING, Any, Final

from asgiref.sync import sync_to_async
from django.utils import timezone

from laneway import Cancel, Context, Snooze, SyncContext
from laneway.errors import StaleAttempt
from laneway.integrations.django.framework import (
    Task,
    TaskContext,
    TaskError,
    TaskResult,
    TaskResultStatus,
    normalize_json,
    task_finished,
    task_started,
)

if TYPE_CHECKING:
    from laneway.integrations.django.backend import LanewayBackend

# The attempt has another outcome than a failure. A Retry is one, once no retry is left.
_NOT_FAILED: Final = (Cancel, Snooze, StaleAttempt)
Handler = Callable[..., Any] | Callable[..., Awaitable[Any]]


def handler_of(task: Task, backend: LanewayBackend) -> Handler:
    """The handler that runs a task, as the kind of function that the task is."""

    # A schedule may leave out what the task does not need. Nothing changes the defaults.
    def run(ctx: SyncContext, args: list[Any] = [], kwargs: dict[str, Any] = {}) -> Any:  # noqa: B006
        attempt = _Attempt(task, backend, ctx)
        context = attempt.start()
        try:
            return attempt.succeed(task.func(*context, *args, **kwargs))
        except Exception as error:
            attempt.fail(error)
            raise

    async def run_async(
        ctx: Context,
        args: list[Any] = [],  # noqa: B006
        kwargs: dict[str, Any] = {},  # noqa: B006
    ) -> Any:
        attempt = _Attempt(task, backend, ctx)
        context = await sync_to_async(attempt.start)()
        try:
            value = await task.func(*context, *args, **kwargs)
            return await sync_to_async(attempt.succeed)(value)
        except Exception as error:
            await sync_to_async(attempt.fail)(error)
            raise

    handler: Handler = run_async if iscoroutinefunction(task.func) else run
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(handler, name, getattr(task.func, name))
    return handler


class _Attempt:
    """One attempt of a task."""

    def __init__(self, task: Task, backend: LanewayBackend, ctx: Context | SyncContext) -> None:
        self._task = task
        self._backend = backend
        self._ctx = ctx

    def start(self) -> list[TaskContext]:
        """Send the signal; return what the task gets before its arguments."""
        self._result: TaskResult = self._backend.get_result(str(self._ctx.job_id))
        task_started.send(type(self._backend), task_result=self._result)
        return [TaskContext(task_result=self._result)] if self._task.takes_context else []

    def succeed(self, value: Any) -> Any:
        result = normalize_json(value)
        object.__setattr__(self._result, "_return_value", result)
        self._finish(TaskResultStatus.SUCCESSFUL)
        return result

    def fail(self, error: Exception) -> None:
        """Send the signal, unless the task runs again."""
        if isinstance(error, _NOT_FAILED) or not self._ctx.is_last_attempt:
            return
        if self._result.is_finished:  # a receiver of the signal failed
            return
        kind = type(error)
        path = f"{kind.__module__}.{kind.__qualname__}"
        text = "".join(format_exception(error))
        self._result.errors.append(TaskError(exception_class_path=path, traceback=text))
        with suppress(Exception):  # the task's own error is the one to raise
            self._finish(TaskResultStatus.FAILED)

    def _finish(self, status: TaskResultStatus) -> None:
        object.__setattr__(self._result, "finished_at", timezone.now())
        object.__setattr__(self._result, "status", status)
        task_finished.send(type(self._backend), task_result=self._result)
