"""A worker with a database: claims jobs by lane, and may lead.

It holds five database connections: claim, settle, listen, heartbeat, and one for everything else.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

from laneway import __version__
from laneway.config.settings import Settings
from laneway.config.sources import database_source
from laneway.domain.overview import Transport
from laneway.domain.webhook import WEBHOOK_TYPE
from laneway.engine.claim.claim_ahead import ClaimAhead
from laneway.engine.claim.floors import Floors
from laneway.engine.claim.lane_loop import LaneLoop, LaneTools
from laneway.engine.claim.lane_routing import served, warn_of_missing
from laneway.engine.claim.poller import Poller
from laneway.engine.claim.start_lines import log_start
from laneway.engine.claim.wakeups import Wakeups
from laneway.engine.leader.services import LeaderServices
from laneway.engine.lease.attempt_store import DatabaseAttemptStore
from laneway.engine.lease.completer import MAX_BATCH
from laneway.engine.lease.heartbeat import Heartbeat, database_renewal
from laneway.engine.registrar import Registrar
from laneway.engine.registry import Registry
from laneway.engine.run.attempt import Run
from laneway.engine.run.sub_jobs import SubJobs
from laneway.engine.runtime import STOP_S, AttemptWrites, WorkerRuntime
from laneway.errors import LanewayError
from laneway.observability.safe_logger import SafeLogger
from laneway.store import lanes
from laneway.store.database import Database
from laneway.store.leases import Assignment, Verdict, WriteResult
from laneway.store.migrate import check
from laneway.store.notify import wake, wake_message
from laneway.store.waker import Waker
from laneway.store.workers import WorkerInfo

log = SafeLogger("laneway")


class Databases(NamedTuple):
    """Databases with one connection each, so that kinds of statements do not block each other."""

    claim: Database
    settle: Database
    rest: Database


class Worker(WorkerRuntime):
    """Runs the handlers of a registry; `start`, then `stop`."""

    # Whether it may become leader.
    leads: ClassVar[bool] = True

    @property
    def hint(self) -> str:
        source = database_source(self.settings.conninfo)
        return f"is {source} right, and does PostgreSQL run there?"

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
        lists_types: bool = True,
    ) -> None:
        """`lists_types`: log the lane of each job type at start."""
        super().__init__(settings, registry, name=name, app=app, max_jobs=max_jobs)
        self._given_dsn = dsn
        self._dsn = ""
        self._only = only_lanes
        self._is_off = is_off
        self._lists_types = lists_types
        self._transport: Transport = transport
        # The lanes, as last read.
        self.state = lanes.ControlState(0, False, {})
        self.loops: dict[str, LaneLoop] = {}

    # Building ---------------------------------------------------------------------------------

    def _may_start(self) -> bool:
        if self._is_off:
            log.info("LANEWAY_WORKER=off: no worker in this process")
        return not self._is_off

    async def _open(self) -> AttemptWrites:
        settings, given = self.settings, self._given_dsn
        self._dsn = dsn = given if isinstance(given, str) else await asyncio.to_thread(given)
        self.databases = Databases(
            claim=Database(dsn, settings, role="claim", size=1),
            settle=Database(dsn, settings, role="settle", size=1),
            rest=Database(dsn, settings, role="worker", size=1),
        )
        self._metrics.watch(*self.databases)
        return AttemptWrites(
            settle=DatabaseAttemptStore(self.databases.settle),
            report=DatabaseAttemptStore(
                self.databases.rest,
                f"worker {self.name}",
                self.registry.limits,
                SubJobs(self.registry, settings.payload_limits, self.databases.rest.run),
            ),
            heartbeat=Heartbeat(
                database_renewal(dsn, settings), settings, self._warnings, self._on_heartbeat
            ),
        )

    def _build(self) -> None:
        settings, warnings = self.settings, self._warnings
        rest = self.databases.rest
        self._peers = Waker.of_peers(rest)
        is_set = "concurrency" in settings.model_fields_set
        self.ahead = ClaimAhead(
            self.capacity, self.executor, self._give_back, settings.concurrency if is_set else None
        )
        # Job types to wake others for once their jobs are back in the queue.
        self._returned: set[str] = set()
        self._tools = LaneTools(
            worker_id=self.id,
            database=self.databases.claim,
            capacity=self.capacity,
            executor=self.executor,
            completer=self.completer,
            heartbeat=self.heartbeat,
            version=lambda: self.state.version,
            refresh=self.refresh,
            wake_peers=self._peers.wake,
            claiming=asyncio.Lock(),
            metrics=self._metrics,
            is_drained=lambda: self.registrar.is_drained,
            ahead=self.ahead,
        )
        self.leader_services = LeaderServices(
            rest,
            settings,
            warnings,
            self.id,
            self._on_reclaimed,
            self.registry.checks,
            self.resources,
        )
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
        self.poller = Poller(rest, warnings, self, self.registrar)
        self.wakeups = Wakeups(self._dsn, settings, warnings, self._on_message, self._wake_all)

    async def _connect(self) -> None:
        await asyncio.to_thread(check, self._dsn, __version__, role="worker")
        await self.registrar.register(self.registry, self.settings)

    async def _receive(self) -> None:
        await self._when_reachable(self.refresh)
        self.registrar.start()
        if self.leads:
            self.leader_services.start()
        if self.settings.can_listen:
            self.wakeups.start()
        self.poller.start()
        warn_of_missing(self._only, self.state)
        self._log_start()

    def _log_start(self) -> None:
        log_start(
            f"worker {self.name}",
            self.settings,
            self.registry,
            self.state,
            self._only,
            database=self._dsn,
            lists_types=self._lists_types,
        )

    def problem(self) -> str | None:
        found = super().problem()
        if found is not None:
            return found
        if self.registrar.is_drained:
            return "the worker was drained by an operator"
        try:
            check(self._dsn, __version__)
        except LanewayError as error:
            return str(error)
        return None

    # Stopping ---------------------------------------------------------------------------------

    async def _stop_receiving(self) -> None:
        self.registrar.announce_stop()
        self.ahead.return_all()
        stops = [asyncio.ensure_future(loop.stop()) for loop in self.loops.values()]
        if stops:
            await asyncio.wait(stops, timeout=STOP_S)
        # Jobs of a claim that hangs are reclaimed when their leases lapse.
        await self._cancel_loops()
        await asyncio.gather(*stops, return_exceptions=True)
        # Those of a claim that was answered meanwhile.
        self.ahead.return_all()

    async def _leave(self, released: set[str], until: float, hurry: asyncio.Event | None) -> None:
        with contextlib.suppress(LanewayError, TimeoutError):
            async with asyncio.timeout(STOP_S):
                if released or self._returned:
                    message = wake_message(released | self._returned)
                    await self.databases.rest.run(wake(message))
                await self.leader_services.resign()
                await self.registrar.unregister()

    async def _cancel_services(self) -> None:
        await self._cancel_loops()
        for service in (self.poller, self.wakeups, self.registrar):
            await service.cancel()
        await self.leader_services.cancel()

    async def _cancel_loops(self) -> None:
        for loop in self.loops.values():
            await loop.cancel()

    async def _disconnect(self) -> None:
        await self._peers.close(send=False)
        for database in self.databases:
            await database.close()

    # Callbacks of the services ----------------------------------------------------------------

    async def refresh(self) -> None:
        """Read the lanes, and start or update their loops."""
        state = await self.databases.rest.run(lanes.read())
        if state.has_webhooks and self.settings.webhooks == "on" and self.is_running:
            state = await self._serve_webhooks(state)
        if not self.is_running:
            # Do not start a loop while the worker stops.
            return
        self.state = state
        self.leader_services.scheduler.wake()
        runnable = [*self.registry.runnable, *self.internal.values()]
        mine = served(self.state, runnable, self._only)
        self.capacity.serve({lane: {h.isolation for h in hs} for lane, hs in mine.items()})
        for lane, loop in list(self.loops.items()):
            if lane not in mine:
                loop.serve([])
        for lane, handlers in mine.items():
            if lane in self.loops:
                self.loops[lane].serve(handlers)
            else:
                self.loops[lane] = loop = LaneLoop(lane, handlers, self._tools, self._warnings)
                self._start_loop(loop)

    async def _serve_webhooks(self, state: lanes.ControlState) -> lanes.ControlState:
        """Deliver to webhooks from now on, if this worker serves their lane; return the lanes."""
        if WEBHOOK_TYPE in self.internal:
            return state
        # Loads packages for TLS, which most workers do not need.
        from laneway.engine.webhook.delivery import DELIVERY_LANE, delivery_handler

        state = await self.registrar.place(WEBHOOK_TYPE, DELIVERY_LANE)
        if self._only is None or state.lane_of(WEBHOOK_TYPE) in self._only:
            handler = delivery_handler(self.settings, lambda: self.databases.rest)
            await self.registrar.add(handler)
            self.internal[WEBHOOK_TYPE] = handler
            log.info("worker %s delivers to webhooks", self.name)
        return state

    def _start_loop(self, loop: LaneLoop) -> None:
        loop.start()

    def job_types(self) -> list[str]:
        if self.registrar.is_drained:
            # The poller then wakes other workers for all jobs that it promotes.
            return []
        return sorted(job_type for loop in self.loops.values() for job_type in loop.job_types)

    def floors(self) -> list[Floors]:
        return [loop.floors for loop in self.loops.values()]

    def on_foreign_work(self, job_types: set[str]) -> None:
        self._peers.wake(job_types)

    def _batch_size(self) -> int:
        # Half of a full lane: the other half is settled while the lane claims again.
        is_full = any(loop.is_full for loop in self.loops.values())
        return self.heartbeat.held // 2 if is_full else MAX_BATCH

    def on_work(self, job_types: set[str]) -> None:
        for loop in self.loops.values():
            if not loop.job_types.isdisjoint(job_types):
                loop.wake()

    def on_room(self) -> None:
        # Loops claim in the order in which they are woken.
        for loop in sorted(self.loops.values(), key=lambda one: self.capacity.last_taken(one.lane)):
            if loop.wants_work:
                loop.wake()
        self.ahead.feed_soon()
        super().on_room()

    def _give_back(self, jobs: Sequence[Assignment]) -> None:
        for job in jobs:
            self._returned.add(job.job_type)
            self.completer.add(Verdict(job.claim, "release"))

    def _stop_run(self, seq: int, attempt: int, answer: str, write: str) -> None:
        self.ahead.stop(seq, attempt, answer)
        super()._stop_run(seq, attempt, answer, write)

    def on_abandoned(self, run: Run) -> None:
        """Do nothing: lanes read the room that is left."""

    def _on_message(self, text: str) -> None:
        word, _, rest = text.partition(" ")
        if word == "wake":
            self.poller.hint()
            if rest == "*":
                self._wake_all()
            else:
                self.on_work(set(rest.split("\x1f")))
        elif word == "turn" and str(self.id) in rest.split():
            self._on_freed_limit()
        elif word == "schedules":
            self.leader_services.scheduler.wake()
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

    def _on_submitted(self, job_types: set[str]) -> None:
        self.poller.hint()
        self.on_work(job_types)
        self._peers.wake(job_types)

    def _on_settled(self, verdicts: list[Verdict], answers: list[WriteResult]) -> None:
        super()._on_settled(verdicts, answers)
        returned = ("approved", "pending", "waiting")
        if any(one.answer == "arrived" or one.status in returned for one in answers):
            self.poller.wake()
        if any(one.answer == "freed" for one in answers) or any(
            one.may_be_finished for one in verdicts
        ):
            self._requests.limits.hint()
        woken = {str(one.status) for one in answers if one.answer in ("promoted", "freed")}
        if self._returned and self.is_running and any(v.kind == "release" for v in verdicts):
            woken |= self._returned
            self._returned.clear()
        if woken:
            self.on_work(woken)
            self._peers.wake(woken)
        for loop in self.loops.values():
            if loop.is_full:
                loop.wake()
