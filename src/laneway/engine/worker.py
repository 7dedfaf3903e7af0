"""One worker: builds its services, connects them, and stops them in order.

It holds five database connections: claim, settle, listen, heartbeat, and one for everything else.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Self
from uuid import UUID, uuid4

from laneway import __version__, forks
from laneway.config.settings import Settings
from laneway.domain.overview import Transport
from laneway.engine.child.process_pool import ProcessPool
from laneway.engine.claim.capacity import Capacity
from laneway.engine.claim.lane_loop import LaneLoop, LaneTools
from laneway.engine.claim.lane_routing import announce_lanes, served, warn_of_missing
from laneway.engine.claim.poller import Poller
from laneway.engine.claim.wakeups import Wakeups
from laneway.engine.databases import Databases
from laneway.engine.hooks import call_hooks
from laneway.engine.leader.retention import RetentionService
from laneway.engine.leader.scheduler import Scheduler
from laneway.engine.leader.watchdog import Watchdog
from laneway.engine.lease.attempt_store import DatabaseAttemptStore
from laneway.engine.lease.completer import MAX_BATCH, Completer
from laneway.engine.lease.heartbeat import Heartbeat, database_renewal
from laneway.engine.process.loop_marker import LoopMarker
from laneway.engine.process.names import default_name
from laneway.engine.process.shutdown import STOP_S, finish_or_release
from laneway.engine.process.worker_metrics import WorkerMetrics
from laneway.engine.registrar import Registrar
from laneway.engine.registry import Registry
from laneway.engine.run.executor import Executor
from laneway.engine.run.handler_requests import HandlerRequests
from laneway.errors import DatabaseUnavailable, LanewayError
from laneway.observability.log_throttle import LogThrottle
from laneway.store import lanes
from laneway.store.leases import Verdict, WriteResult
from laneway.store.migrate import check
from laneway.store.notify import wake, wake_message
from laneway.store.waker import Waker
from laneway.store.workers import WorkerInfo

log = logging.getLogger("laneway")


class Worker:
    """Runs the handlers of a registry; `start`, then `stop`."""

    def __init__(
        self,
        dsn: str | Callable[[], str],
        settings: Settings,
        registry: Registry,
        *,
        only_lanes: frozenset[str] | None = None,
        name: str | None = None,
        app: str | None = None,
        is_off: bool = False,
        max_jobs: int | None = None,
        transport: Transport = "in_process",
    ) -> None:
        self.id: UUID = uuid4()
        self.name = name or default_name()
        self.settings = settings
        self.registry = registry
        self.resources = SimpleNamespace()
        self._given_dsn = dsn
        self._dsn = ""
        self._only = only_lanes
        self._app = app
        self._is_off = is_off
        self._max_jobs = max_jobs
        # Set once `max_jobs` jobs have ended.
        self.spent = asyncio.Event()
        self._transport: Transport = transport
        self._warnings = LogThrottle()
        self._metrics = WorkerMetrics()
        self._state = lanes.ControlState(0, False, {})
        self.loops: dict[str, LaneLoop] = {}
        self.is_running = False

    # Building ---------------------------------------------------------------------------------

    def _build(self, marker: LoopMarker | None) -> None:
        settings, warnings, checks = self.settings, self._warnings, self.registry.checks
        self.databases = Databases.of(self._dsn, settings)
        self._metrics.watch(*self.databases)
        rest = self.databases.rest
        self._peers = Waker.of_peers(rest)
        self.capacity = Capacity.of(settings, self._max_jobs)
        renewal = database_renewal(self._dsn, settings)
        self.heartbeat = Heartbeat(renewal, settings, warnings, self._on_heartbeat)
        settle = DatabaseAttemptStore(self.databases.settle)
        self.completer = Completer(settle, warnings, self._on_settled, self._batch_size)
        self._requests = HandlerRequests(DatabaseAttemptStore(rest), warnings, self._on_report)
        self.reporter = self._requests.reporter
        self._pool = ProcessPool(max(1, settings.children), settings, app=self._app)
        self.executor = Executor(
            self.registry,
            self.capacity,
            self._requests,
            self.completer,
            self._pool,
            settings,
            self.resources,
            self._on_room,
            marker,
            name=self.name,
            on_void=self._metrics.void,
        )
        self._tools = LaneTools(
            self.id,
            self.databases.claim,
            self.capacity,
            self.executor,
            self.completer,
            self.heartbeat,
            lambda: self._state.version,
            self.refresh,
            self._peers.wake,
            asyncio.Lock(),
            self._metrics,
            lambda: self.registrar.is_drained,
        )
        self.poller = Poller(
            rest,
            warnings,
            self._job_types,
            lambda: [loop.floors for loop in self.loops.values()],
            lambda: self._state,
            self.refresh,
            self._on_work,
            self._peers.wake,
        )
        self.watchdog = Watchdog(rest, settings, warnings, self.id, self._on_reclaimed)
        self.retention = RetentionService(
            rest, settings, warnings, self.watchdog, self._on_reclaimed
        )
        self.scheduler = Scheduler(
            rest, warnings, self.id, checks, self.resources, self._on_reclaimed
        )
        self.watchdog.on_elected = self.scheduler.elected
        self.registrar = Registrar(
            rest,
            warnings,
            WorkerInfo(
                id=self.id,
                name=self.name,
                host=socket.gethostname(),
                pid=os.getpid(),
                code=__version__,
                job_types=self.registry.job_types,
                lanes=sorted(self._only) if self._only is not None else None,
                concurrency=settings.concurrency,
                transport=self._transport,
            ),
            self._on_resumed,
            self.capacity,
        )
        self.wakeups = Wakeups(self._dsn, settings, warnings, self._on_message, self._wake_all)

    async def start(self, marker: LoopMarker | None = None) -> None:
        """Connect, waiting for the database if needed; load resources and begin to claim."""
        if self._is_off:
            log.info("LANEWAY_WORKER=off: no worker in this process")
            return
        given = self._given_dsn
        self._dsn = given if isinstance(given, str) else await asyncio.to_thread(given)
        self._build(marker)
        forks.enter(asyncio.get_running_loop())
        self.heartbeat.start()
        try:
            await self._when_reachable(self._register)
            await call_hooks(self.registry.on_start, self.resources)
            self.is_running = True
            await self._when_reachable(self.refresh)
        except BaseException:
            self.is_running = False
            await self._stop_claiming()
            await self._close()
            raise
        self.completer.start()
        self.reporter.start()
        self.registrar.start()
        self.watchdog.start()
        self.scheduler.start()
        self.retention.start()
        if self.settings.can_listen:
            self.wakeups.start()
        self.poller.start()
        warn_of_missing(self._only, self._state)
        announce_lanes(self.name, self.loops, self.registry.job_types, self._only, self._state)

    async def _register(self) -> None:
        await asyncio.to_thread(check, self._dsn, __version__, role="worker")
        await self.registrar.register(self.registry, self.settings)

    async def _when_reachable(self, work: Callable[[], Awaitable[None]]) -> None:
        """Retry `work` until the database can be reached."""
        failures = 0
        while True:
            try:
                return await work()
            except DatabaseUnavailable as error:
                if type(error) is not DatabaseUnavailable:
                    raise
                failures += 1
                self._warnings.warn("start", f"{error} (is database_url right? trying again)")
                await asyncio.sleep(min(2.0, 0.1 * 2**failures))

    def problem(self) -> str | None:
        """The reason why it would not run a job now, if there is one; thread-safe."""
        if not self.is_running:
            return "the worker is starting or stopping"
        if not self.heartbeat.is_ready:
            return self.heartbeat.problem
        if self.registrar.is_drained:
            return "the worker was drained by an operator"
        try:
            check(self._dsn, __version__)
        except LanewayError as error:
            return str(error)
        return None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    # Stopping ---------------------------------------------------------------------------------

    async def stop(self, grace_s: float | None = None, hurry: asyncio.Event | None = None) -> None:
        """Stop claiming at once, let jobs finish within the grace, then release the rest."""
        if not self.is_running:
            return
        self.is_running = False
        self.registrar.announce_stop()
        await self._stop_claiming()
        within_s = self.settings.shutdown_grace if grace_s is None else grace_s
        released = await finish_or_release(self.executor, self.completer, within_s, hurry)
        with contextlib.suppress(LanewayError, TimeoutError):
            async with asyncio.timeout(STOP_S):
                if released:
                    await self.databases.rest.run(wake(wake_message(released)))
                await self.scheduler.resign()
                await self.watchdog.resign()
                await self.registrar.unregister()
        for service in (self.poller, self.wakeups, self.retention, self.watchdog, self.registrar):
            await service.cancel()
        await self.scheduler.cancel()
        await self.reporter.cancel()
        await self.completer.cancel()
        try:
            await self.executor.close()
            await call_hooks(self.registry.on_stop, self.resources)
        finally:
            await self._close()
        log.info("worker %s stopped", self.name)

    async def _stop_claiming(self) -> None:
        stops = [asyncio.ensure_future(loop.stop()) for loop in self.loops.values()]
        if stops:
            await asyncio.wait(stops, timeout=STOP_S)
        # Jobs of a claim that hangs are reclaimed when their leases lapse.
        for loop in self.loops.values():
            await loop.cancel()
        await asyncio.gather(*stops, return_exceptions=True)

    async def _close(self) -> None:
        forks.leave(asyncio.get_running_loop())
        self._metrics.close()
        await self.heartbeat.stop()
        await self._pool.close()
        await self._peers.close(send=False)
        await self.databases.close()

    # Callbacks of the services ----------------------------------------------------------------

    async def refresh(self) -> None:
        """Read the lanes, and start or update their loops."""
        state = await self.databases.rest.run(lanes.read())
        if not self.is_running:
            # Do not start a loop while the worker stops.
            return
        self._state = state
        self.scheduler.wake()
        mine = served(self._state, self.registry.runnable, self._only)
        self.capacity.serve({lane: {h.isolation for h in hs} for lane, hs in mine.items()})
        for lane, loop in list(self.loops.items()):
            if lane not in mine:
                loop.serve([])
        for lane, handlers in mine.items():
            if lane in self.loops:
                self.loops[lane].serve(handlers)
            else:
                self.loops[lane] = loop = LaneLoop(lane, handlers, self._tools, self._warnings)
                loop.start()

    def _job_types(self) -> list[str]:
        if self.registrar.is_drained:
            # The poller then wakes other workers for all jobs that it promotes.
            return []
        return sorted(job_type for loop in self.loops.values() for job_type in loop.job_types)

    def _batch_size(self) -> int:
        # Half of a full lane: the other half is settled while the lane claims again.
        is_full = any(loop.is_full for loop in self.loops.values())
        return self.heartbeat.held // 2 if is_full else MAX_BATCH

    def _on_work(self, job_types: set[str]) -> None:
        for loop in self.loops.values():
            if not loop.job_types.isdisjoint(job_types):
                loop.wake()

    def _on_room(self) -> None:
        # Loops claim in the order in which they are woken.
        for loop in sorted(self.loops.values(), key=lambda one: self.capacity.last_taken(one.lane)):
            if loop.wants_work:
                loop.wake()
        self._check_spent()

    def _check_spent(self) -> None:
        if self.capacity.is_spent and self.executor.is_done:
            self.spent.set()

    def _on_message(self, text: str) -> None:
        word, _, rest = text.partition(" ")
        if word == "wake":
            self.poller.hint()
            if rest == "*":
                self._wake_all()
            else:
                self._on_work(set(rest.split("\x1f")))
        elif word == "turn" and str(self.id) in rest.split():
            self._on_freed_limit()
        elif word == "schedules":
            self.scheduler.wake()
        elif word == "cancel" and rest == str(self.id):
            self.heartbeat.beat()
        elif word == "drain" and rest == str(self.id):
            self.registrar.wake()

    def _on_freed_limit(self) -> None:
        """Claim again: another process left room under a limit to this one."""
        self._requests.limits.hint()
        for loop in self.loops.values():
            if loop.is_full:
                loop.wake()

    def _wake_all(self) -> None:
        for loop in self.loops.values():
            loop.wake()

    def _on_resumed(self) -> None:
        self.poller.wake()
        self._wake_all()

    def _on_reclaimed(self, job_types: set[str]) -> None:
        self.poller.wake()
        self._peers.wake(job_types)

    def _on_settled(self, verdicts: list[Verdict], answers: list[WriteResult]) -> None:
        self.heartbeat.forget(verdict.claim for verdict in verdicts)
        self._metrics.settled(verdicts, answers)
        if any(answer.status in ("approved", "pending") for answer in answers):
            self.poller.wake()
        if any(one.answer == "freed" for one in answers) or any(
            one.may_be_finished for one in verdicts
        ):
            self._requests.limits.hint()
        woken = {str(one.status) for one in answers if one.answer in ("promoted", "freed")}
        if woken:
            self._on_work(woken)
            self._peers.wake(woken)
        for loop in self.loops.values():
            if loop.is_full:
                loop.wake()
        self._check_spent()

    def _on_report(self, answer: WriteResult) -> None:
        self._stop_run(answer.seq, answer.attempt, answer.answer, "report")

    def _on_heartbeat(self, seq: int, attempt: int, answer: str) -> None:
        self._stop_run(seq, attempt, answer, "heartbeat")

    def _stop_run(self, seq: int, attempt: int, answer: str, write: str) -> None:
        self._metrics.refused(write, answer)
        self.executor.stop_by_claim(seq, attempt, answer)
