"""The Laneway instance behind a backend: its database, the lanes of queues, tasks as handlers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from threading import RLock
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, connections, transaction

from laneway.app.laneway import Laneway
from laneway.domain.job import Job
from laneway.domain.lane import check_lane_name
from laneway.errors import InvalidInput
from laneway.integrations.django.attempts import handler_of
from laneway.integrations.django.database import (
    dsn_of,
    fresh_connections,
    fresh_connections_async,
)
from laneway.integrations.django.framework import Task

if TYPE_CHECKING:
    from laneway.integrations.django.backend import LanewayBackend

OPTIONS: Final = ("DATABASE", "DATABASE_URL", "HANDLER", "IMPORTS", "LANES", "SETTINGS")


class Application:
    """One per backend of the settings and process; Django makes backends for every thread."""

    def __init__(self, backend: LanewayBackend) -> None:
        self._backend = backend
        self._options: Mapping[str, Any] = backend.options
        if unknown := sorted(self._options.keys() - set(OPTIONS)):
            raise ImproperlyConfigured(
                f"TASKS[{backend.alias!r}]: unknown option {unknown[0]};"
                f" known: {', '.join(OPTIONS)}"
            )
        self._tasks: dict[str, Task] = {}
        self._lock = RLock()
        self.using: str = self._options.get("DATABASE", DEFAULT_DB_ALIAS)
        self.imports: tuple[str, ...] = tuple(self._options.get("IMPORTS", ()))

    # Tasks and lanes --------------------------------------------------------------------------

    def declare(self, task: Task) -> None:
        """Make a task known to workers; the first time is its definition."""
        with self._lock:
            if task.module_path in self._tasks:
                return
            self._tasks[task.module_path] = task
            if "lw" in self.__dict__:
                self._register(task, self.lw)

    @cached_property
    def lw(self) -> Laneway:
        """The instance, made on first use: tests have set up their database by then."""
        with self._lock:
            if (made := self.__dict__.get("lw")) is not None:
                return made  # type: ignore[no-any-return]
            url = self._options.get("DATABASE_URL") or dsn_of(self.using)
            made = Laneway(url, **self._options.get("SETTINGS", {}))
            # Around all handlers, also those that are not tasks.
            made.middleware(fresh_connections)
            made.middleware(fresh_connections_async)
            for task in self._tasks.values():
                self._register(task, made)
            self.__dict__["lw"] = made
            return made

    def lane_of(self, queue: str) -> str:
        """The lane of a queue: that of LANES, else the one of its name."""
        lanes: Mapping[str, str] = self._options.get("LANES", {})
        return check_lane_name(lanes.get(queue, queue), f"lane of the queue {queue!r}")

    def job_type_of(self, task: Task) -> str:
        """The job type: a lane has whole types, so that a task has another in another queue."""
        defined = self._tasks[task.module_path]
        path: str = task.module_path
        return path if task.queue_name == defined.queue_name else f"{path}:{task.queue_name}"

    def task_of(self, job_type: str) -> Task | None:
        """The task of a job type; None for a type that is not a task's."""
        path, _, queue = job_type.partition(":")
        task = self._tasks.get(path)
        return task if task is None or not queue else task.using(queue_name=queue)

    def problems(self) -> Iterator[str]:
        """Mistakes in the settings."""
        for queue in sorted(self._backend.queues):
            try:
                self.lane_of(queue)
            except InvalidInput as error:
                yield f"{error}: map the queue to a lane with OPTIONS LANES"
        if self.is_shared:
            try:
                dsn_of(self.using)
            except ImproperlyConfigured as error:
                yield str(error)

    def _register(self, task: Task, lw: Laneway) -> None:
        queues = {task.queue_name, *self._backend.queues}
        handler = handler_of(task, self._backend)
        for queue in sorted(queues):
            lane = self.lane_of(queue)
            options: dict[str, Any] = {
                # The lane `default` takes all types that no lane has.
                **({} if lane == "default" else {"lane": lane}),
                **self._options.get("HANDLER", {}),
                **task.laneway,
            }
            job_type = self.job_type_of(task.using(queue_name=queue))
            lw.handler(job_type, **options)(handler)

    # Jobs -------------------------------------------------------------------------------------

    @property
    def is_shared(self) -> bool:
        """Whether Django's connection reaches the jobs."""
        return not self._options.get("DATABASE_URL")

    def submit(self, task: Task, payload: dict[str, Any], **options: Any) -> UUID:
        """Submit a job with the current transaction; return its id.

        In the same database it is part of the transaction. In another one it is checked now, and
        submitted once the transaction is committed.
        """
        job_type, sync = self.job_type_of(task), self.lw.sync
        if self.is_shared:
            made = sync.submit(job_type, payload, conn=connections[self.using], **options)
            if self.lw.settings.listen:
                self._on_commit(partial(sync.wake, [made]), robust=True)
            return made.id
        job = sync.prepare(job_type, payload, **options)
        self._on_commit(partial(sync.submit_prepared, job))
        return job.id

    def get(self, job_id: str) -> Job:
        """The job, also if the current transaction submitted it."""
        conn = connections[self.using] if self.is_shared else None
        return self.lw.sync.get(job_id, conn=conn)

    def _on_commit(self, call: Callable[[], object], *, robust: bool = False) -> None:
        transaction.on_commit(call, using=self.using, robust=robust)


_applications: dict[str, Application] = {}
_lock = RLock()


def application_of(backend: LanewayBackend) -> Application:
    """The application of a backend, shared by all threads."""
    with _lock:
        found = _applications.get(backend.alias)
        if found is None:
            found = _applications[backend.alias] = Application(backend)
        return found
