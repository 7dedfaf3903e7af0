"""The life of a worker: start, run handlers, stop; whatever its jobs come from.

A subclass is its transport: worker.py claims jobs from a database, rpc/worker/worker.py receives
them from a server.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from itertools import islice
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple, Self
from uuid import UUID, uuid4

from laneway import forks
from laneway.config.settings import Settings
from laneway.domain.approval import display_name
from laneway.domain.claim import Claim
from laneway.engine.child.process_pool import ProcessPool
from laneway.engine.claim.capacity import Capacity
from laneway.engine.lease.attempt_store import AttemptStore
from laneway.engine.lease.completer import MAX_BATCH, Completer
from laneway.engine.lease.heartbeat import Heartbeat
from laneway.engine.lease.job_log import JobLogger
from laneway.engine.process.loop_marker import LoopMarker
from laneway.engine.process.start_retry import StartRetry
from laneway.engine.process.worker_metrics import WorkerMetrics
from laneway.engine.registry import Handler, Registry
from laneway.engine.run.attempt import Run
from laneway.engine.run.executor import Executor
from laneway.engine.run.handler_requests import HandlerRequests
from laneway.engine.run.middleware import warn_of_uncovered
from laneway.engine.run.tools import RunTools
from laneway.errors import DatabaseUnavailable
from laneway.observability.log_throttle import LogThrottle
from laneway.observability.safe_logger import SafeLogger
from laneway.store.leases import Verdict, WriteResult

log = SafeLogger("laneway")

STOP_S = 2.0
# Jobs that the line about a stop names.
MAX_NAMED = 5


class AttemptWrites(NamedTuple):
    """The writes of a transport about running attempts: outcomes, all others, and renewals."""

    settle: AttemptStore
    report: AttemptStore
    heartbeat: Heartbeat


class WorkerRuntime(ABC):
    """Runs the handlers of a registry; `start`, then `stop`."""

    kind: ClassVar[str] = "worker"

    def __init__(
        self,
        settings: Settings,
        registry: Registry,
        *,
        name: str | None = None,
        app: str | None = None,
        max_jobs: int | None = None,
    ) -> None:
        self.id: UUID = uuid4()
        self.name = name or _default_name()
        self.settings = settings
        self.registry = registry
        self.resources = SimpleNamespace()
        self._app = app
        self._max_jobs = max_jobs
        # Set once `max_jobs` jobs have ended.
        self.spent = asyncio.Event()
        # Laneway's own handlers by job type, which need a database.
        self.internal: dict[str, Handler] = {}
        self._warnings = LogThrottle()
        self._metrics = WorkerMetrics(job_log=JobLogger())
        self.is_running = False

    # The transport ----------------------------------------------------------------------------

    def _may_start(self) -> bool:
        """Whether to start at all; raises ConfigError."""
        return True

    @abstractmethod
    async def _open(self) -> AttemptWrites:
        """Prepare the connections, without using them."""

    @abstractmethod
    def _build(self) -> None:
        """Build the services that receive jobs."""

    @abstractmethod
    async def _connect(self) -> None:
        """Register the worker; repeated while this raises DatabaseUnavailable."""

    @abstractmethod
    async def _receive(self) -> None:
        """Begin to receive jobs."""

    @abstractmethod
    async def _stop_receiving(self) -> None:
        """Take no more jobs; those that run may still write."""

    @abstractmethod
    async def _leave(self, released: set[str], until: float, hurry: asyncio.Event | None) -> None:
        """Say goodbye: all jobs have ended, and those of these types were released."""

    @abstractmethod
    async def _cancel_services(self) -> None:
        """Stop what `_receive` started."""

    @abstractmethod
    async def _disconnect(self) -> None:
        """Close the connections."""

    def _batch_size(self) -> int:
        """The most outcomes to write at once."""
        return MAX_BATCH

    # Starting ---------------------------------------------------------------------------------

    @property
    def hint(self) -> str:
        """Advice for the log while the database or server cannot be reached."""
        return ""

    async def start(self, marker: LoopMarker | None = None) -> None:
        """Connect, waiting for the other side if needed; load resources and begin to take jobs."""
        if not self._may_start():
            return
        warn_of_uncovered(self.registry)
        self._build_runs(await self._open(), marker)
        self._build()
        forks.enter(asyncio.get_running_loop())
        self.heartbeat.start()
        try:
            await self._when_reachable(self._connect)
            await _call_hooks(self.registry.on_start, self.resources)
            self.is_running = True
            self.completer.start()
            self.reporter.start()
            await self._receive()
        except BaseException:
            self.is_running = False
            await self._stop_services()
            await self.executor.close()
            await self._close()
            raise

    def _build_runs(self, writes: AttemptWrites, marker: LoopMarker | None) -> None:
        warnings = self._warnings
        self.capacity = Capacity.of(self.settings, self._max_jobs)
        self.heartbeat = writes.heartbeat
        self.completer = Completer(writes.settle, warnings, self._on_settled, self._batch_size)
        self._requests = HandlerRequests(
            writes.report, warnings, self._on_report, self._on_submitted
        )
        self.reporter = self._requests.reporter
        self._pool = ProcessPool(
            self.capacity.sizes["process"],
            self.settings,
            app=self._app,
            has_database=writes.report.has_database,
        )
        self.executor = Executor(
            RunTools(
                name=self.name,
                settings=self.settings,
                registry=self.registry,
                internal=self.internal,
                resources=self.resources,
                capacity=self.capacity,
                requests=self._requests,
                completer=self.completer,
                pool=self._pool,
                marker=marker,
                events=self,
            )
        )

    async def _when_reachable(self, work: Callable[[], Awaitable[None]]) -> None:
        """Retry `work` until the other side can be reached; a refused login ends this."""
        retry = StartRetry(self.hint)
        while True:
            try:
                return await work()
            except DatabaseUnavailable as error:
                await asyncio.sleep(retry.pause_s(error))

    def problem(self) -> str | None:
        """The reason why it would not run a job now, if there is one; thread-safe."""
        if not self.is_running:
            return "the worker is starting or stopping"
        return None if self.heartbeat.is_ready else self.heartbeat.problem

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    # Stopping ---------------------------------------------------------------------------------

    async def stop(self, grace_s: float | None = None, hurry: asyncio.Event | None = None) -> None:
        """Take no more jobs, let jobs finish within the grace, then release the rest."""
        if not self.is_running:
            return
        self.is_running = False
        within_s = self.settings.shutdown_grace if grace_s is None else grace_s
        until = time.monotonic() + within_s
        await self._stop_receiving()
        released = await self._finish_or_release(within_s, hurry)
        await self._leave(released, until, hurry)
        await self._stop_services()
        try:
            await self.executor.close()
            await _call_hooks(self.registry.on_stop, self.resources)
        finally:
            await self._close()
        log.info("%s %s stopped", self.kind, self.name)

    async def _finish_or_release(self, grace_s: float, hurry: asyncio.Event | None) -> set[str]:
        """Let jobs finish within the grace and release the rest; return the released job types."""
        executor = self.executor
        await self._finish_within(grace_s, hurry)
        released = {run.handler.job_type for run in executor.active.values()}
        if n := len(executor.active):
            jobs = "1 job" if n == 1 else f"{n:,} jobs"
            named = ", ".join(
                f"{display_name(run.handler.job_type)} {run.claim.job_id}"
                for run in islice(executor.active.values(), MAX_NAMED)
            )
            more = f" and {n - MAX_NAMED:,} more" if n > MAX_NAMED else ""
            log.warning(
                "%s did not end in time: returned to the queue, to run again: %s%s",
                jobs, named, more,
            )  # fmt: skip
        for run in list(executor.active.values()):
            executor.stop(run, "shutdown")
        if executor.active:
            await self._finish_within(STOP_S / 2)
        for run in list(executor.active.values()):
            executor.abandon(run)
        if executor.active:
            # Killed children end quickly; threads may never end.
            await self._finish_within(STOP_S / 4)
        await self.completer.flush(STOP_S)
        return released

    async def _finish_within(self, grace_s: float, hurry: asyncio.Event | None = None) -> None:
        waits = {asyncio.ensure_future(self.executor.idle.wait())}
        if hurry is not None:
            waits.add(asyncio.ensure_future(hurry.wait()))
        try:
            await asyncio.wait(waits, timeout=grace_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def _stop_services(self) -> None:
        await self._cancel_services()
        await self.reporter.cancel()
        await self.completer.cancel()

    async def _close(self) -> None:
        forks.leave(asyncio.get_running_loop())
        self._metrics.close()
        await self.heartbeat.stop()
        await self._pool.close()
        await self._disconnect()

    # Events -----------------------------------------------------------------------------------

    def on_room(self) -> None:
        self._check_spent()

    def on_void(self, claim: Claim) -> None:
        self._metrics.void(claim)

    @abstractmethod
    def on_abandoned(self, run: Run) -> None:
        """A job has ended although its handler still runs, which keeps its room."""

    def _check_spent(self) -> None:
        if self.capacity.is_spent and self.executor.is_done:
            self.spent.set()

    def _on_settled(self, verdicts: list[Verdict], answers: list[WriteResult]) -> None:
        self.heartbeat.forget(verdict.claim for verdict in verdicts)
        self._metrics.settled(verdicts, answers)
        self._check_spent()

    def _on_submitted(self, job_types: set[str]) -> None:
        """A handler has submitted sub-jobs of these types; a server wakes workers itself."""
        log.debug("submitted sub-jobs: %s", ", ".join(sorted(job_types)))

    def _on_report(self, answer: WriteResult) -> None:
        self._stop_run(answer.seq, answer.attempt, answer.answer, "report")

    def _on_heartbeat(self, seq: int, attempt: int, answer: str) -> None:
        self._stop_run(seq, attempt, answer, "heartbeat")

    def _stop_run(self, seq: int, attempt: int, answer: str, write: str) -> None:
        self._metrics.refused(write, answer)
        self.executor.stop_by_claim(seq, attempt, answer)


def _default_name() -> str:
    """`LANEWAY_WORKER_NAME`, else host and process id."""
    return os.environ.get("LANEWAY_WORKER_NAME") or f"{socket.gethostname()}:{os.getpid()}"


async def _call_hooks(hooks: Iterable[Callable[..., Any]], resources: SimpleNamespace) -> None:
    """Call plain and async hooks in order."""
    for hook in hooks:
        done = hook(resources)
        if inspect.isawaitable(done):
            await done
