"""A worker without a database: gets jobs from a server, runs them with the engine's executor."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import socket
import time
from collections import Counter, deque
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Final, Self
from uuid import UUID, uuid4

from laneway import __version__, forks
from laneway.config.settings import Settings
from laneway.domain.approval import analysis_of
from laneway.domain.claim import Claim
from laneway.engine.child.process_pool import ProcessPool
from laneway.engine.claim.capacity import Capacity
from laneway.engine.hooks import call_hooks
from laneway.engine.lease.completer import Completer
from laneway.engine.process.loop_marker import LoopMarker
from laneway.engine.process.names import default_name
from laneway.engine.process.shutdown import STOP_S, finish_or_release
from laneway.engine.process.throttled_warnings import ThrottledWarnings
from laneway.engine.process.worker_metrics import WorkerMetrics
from laneway.engine.registry import Registry
from laneway.engine.run.attempt import Run
from laneway.engine.run.attempt_outcomes import own_error_json
from laneway.engine.run.executor import Executor
from laneway.engine.run.handler_requests import HandlerRequests
from laneway.errors import ConfigError, DatabaseUnavailable
from laneway.rpc import IS_LATE
from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc.declaration import write_declaration
from laneway.rpc.isolations import ISOLATIONS, needs
from laneway.rpc.messages import read_assignment
from laneway.rpc.worker.attempt_store import InHand, RemoteAttemptStore
from laneway.rpc.worker.connection import ReplicaConnection
from laneway.rpc.worker.endpoint import Endpoint
from laneway.rpc.worker.heartbeat import RemoteHeartbeat
from laneway.rpc.worker.heartbeat_child import memory_of
from laneway.rpc.worker.job_stream import AssignmentStream
from laneway.rpc.worker.loop_lag import AFTER_S, LoopLag
from laneway.rpc.worker.type_warnings import TypeWarnings
from laneway.store.leases import Assignment, Verdict, WriteResult

log = logging.getLogger("laneway")

# A handler that is fenced is given so long before it counts as left behind, and so long handlers
# that come back are gathered.
LEFT_S: Final = 1.0
FLUSH_S: Final = 0.1
# By then what is over by our clock is over by the database's too.
LOST_S: Final = 15.0


class RemoteWorker:
    """Runs the handlers of a registry for a server; `start`, then `stop`."""

    def __init__(
        self,
        registry: Registry,
        settings: Settings,
        link: Endpoint,
        *,
        name: str | None = None,
        app: str | None = None,
        max_jobs: int | None = None,
    ) -> None:
        self.id: UUID = uuid4()
        self.name = name or default_name()
        self.settings = settings
        self.registry = registry
        self.resources = SimpleNamespace()
        self._link = link
        self._app = app
        self._max_jobs = max_jobs
        self.spent = asyncio.Event()
        self._complaints = ThrottledWarnings()
        self._counting = WorkerMetrics()
        self._seqs = itertools.count(1)
        # Lost by our own clock: no server has said yet that they are over.
        self._lost: deque[tuple[float, pb.Claim]] = deque()
        # Came too late, and not yet given back.
        self._late: set[Claim] = set()
        # Handlers that go on though their jobs have ended, by isolation, as servers were told.
        self._left: Counter[str] = Counter()
        self._type_warnings = TypeWarnings()
        self.is_running = False

    # Building -----------------------------------------------------------------------------------

    def _build(self, marker: LoopMarker | None) -> None:
        settings, complaints = self.settings, self._complaints
        self.rooms = Capacity.of(settings, self._max_jobs)
        sizes = self.rooms.sizes
        self._handlers = {handler.job_type: handler for handler in self.registry.runnable}
        used = {handler.isolation for handler in self._handlers.values()}
        self._sizes = {kind: size for kind, size in sizes.items() if kind in used}
        self._pulse = LoopLag()
        self._connection = ReplicaConnection(self._link)
        self.ledger = RemoteAttemptStore(self._connection, str(self.id))
        self.heartbeat = RemoteHeartbeat(
            self._link, self.id, settings, complaints, self._on_heartbeat
        )
        self.completer = Completer(self.ledger, complaints, self._on_settled)
        self._requests = HandlerRequests(self.ledger, complaints, self._on_report)
        self.reporter = self._requests.reporter
        self._pool = ProcessPool(sizes["process"], settings, app=self._app, has_database=False)
        self.executor = Executor(
            self.registry,
            self.rooms,
            self._requests,
            self.completer,
            self._pool,
            settings,
            self.resources,
            self._on_room,
            marker,
            name=self.name,
            on_void=self._on_void,
            on_left=self._on_left,
        )
        self.intake = AssignmentStream(
            self._connection,
            complaints,
            self._hello,
            self._on_message,
            lambda: self.heartbeat.is_answering,
        )
        self.heartbeat.on_frozen = self.intake.reopen
        self._types = [
            pb.JobType(
                name=record.name,
                isolation=ISOLATIONS[record.isolation],
                has_analysis=record.has_analysis,
                declaration=write_declaration(record),
            )
            for record in self.registry.records()
        ]

    async def start(self, marker: LoopMarker | None = None) -> None:
        """Connects (waiting for a server if it must), loads resources, begins to take jobs.

        Raises Unauthenticated or Forbidden with the server's words if the token may not claim.
        """
        if not len(self.registry):
            raise ConfigError("there is no handler: a remote worker serves the types it has")
        if IS_LATE:
            log.warning(
                "grpc was imported before laneway.rpc: set GRPC_ENABLE_FORK_SUPPORT=0,"
                " or a program that is started may break its connections"
            )
        self._build(marker)
        forks.enter(asyncio.get_running_loop())
        self.heartbeat.start()
        try:
            await self._reach()
            await call_hooks(self.registry.on_start, self.resources)
            self.is_running = True
            self.completer.start()
            self.reporter.start()
            self._pulse.start()
            self.intake.start()
            await self.intake.first
        except BaseException:
            self.is_running = False
            await self._stop_services()
            await self.executor.close()
            await self._close()
            raise
        if self.registry.schedules:
            log.warning(
                "a remote worker creates no schedules: %s",
                ", ".join(sorted(self.registry.schedules)),
            )
        # Of which of them it is sent jobs is for the server and its token to say.
        types = ", ".join(self.registry.job_types)
        address = self._connection.address
        log.info("remote worker %s takes jobs of %s; its handlers: %s", self.name, address, types)

    async def _reach(self) -> None:
        """Returns once a server is there that lets us claim, before anything is loaded."""
        failures = 0
        while True:
            try:
                return await self._connection.check(str(self.id))
            except DatabaseUnavailable as error:
                failures += 1
                self._complaints.warn("start", f"{error} (is --server right? trying again)")
                await asyncio.sleep(min(2.0, 0.1 * 2 ** min(failures, 10)))

    def trouble(self) -> str | None:
        """Why it would run no job now; None: it would. Safe to call from other threads."""
        if not self.is_running:
            return "the worker is starting or stopping"
        if not self.heartbeat.is_ready:
            return self.heartbeat.trouble
        return None if self.intake.known.is_set() else "no server is reached"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    # Taking down --------------------------------------------------------------------------------

    async def stop(self, grace_s: float | None = None, hurry: asyncio.Event | None = None) -> None:
        """Takes no more at once, lets jobs finish within the grace, then releases the rest."""
        if not self.is_running:
            return
        self.is_running = False
        within_s = self.settings.shutdown_grace if grace_s is None else grace_s
        until = time.monotonic() + within_s
        for claim in list(self._late):
            self._give_back(claim)
        await self.intake.drain(STOP_S)
        await finish_or_release(self.executor, self.completer, within_s, hurry)
        # Servers may be restarted with us: what was done is told as long as there is time.
        while self.completer.backlog and time.monotonic() < until:
            if hurry is not None and hurry.is_set():
                break
            await self.completer.flush(FLUSH_S)
        await self._stop_services()
        try:
            await self.executor.close()
            await call_hooks(self.registry.on_stop, self.resources)
        finally:
            await self._close()
        log.info("remote worker %s stopped", self.name)

    async def _stop_services(self) -> None:
        self._pulse.stop()
        await self.intake.cancel()
        await self.reporter.cancel()
        await self.completer.cancel()

    async def _close(self) -> None:
        forks.leave(asyncio.get_running_loop())
        self._counting.close()
        await self.heartbeat.stop()
        await self._pool.close()
        await self._connection.close()

    # What it tells a server ---------------------------------------------------------------------

    def _hello(self) -> pb.StreamJobsRequest:
        self._forget_lost()
        self._left = self.executor.abandoned
        room: dict[str, int] = {
            kind: max(0, size - self._left[kind]) for kind, size in self._sizes.items()
        }
        # 0 of a kind would be no bound: types that need it are not named at all.
        full = {kind for kind, left in room.items() if not left}
        open_types = [one for one in self._types if full.isdisjoint(needs(one))]
        return pb.StreamJobsRequest(
            worker_id=str(self.id),
            name=self.name,
            job_types=open_types or self._types,
            max_in_flight=self.rooms.in_all(sum(room.values()), self._left.total())
            if self.is_running
            else 0,
            max_async=room.get("async", 0),
            max_threads=room.get("thread", 0),
            max_processes=room.get("process", 0),
            # What is lost is for the watchdog, not to be given back as if it had never come.
            holds=[*self.ledger.holds(), *(claim for _, claim in self._lost)],
            host=socket.gethostname(),
            pid=os.getpid(),
            code=__version__,
            memory_bytes=memory_of(os.getpid()),
        )

    def _forget_lost(self) -> None:
        while self._lost and time.monotonic() - self._lost[0][0] > LOST_S:
            self._lost.popleft()

    def _on_left(self, run: Run) -> None:
        """It goes on taking room here, of which servers know nothing once its job has ended."""
        loop = asyncio.get_running_loop()
        loop.call_later(LEFT_S if run.stop_reason == "fenced" else 0.0, self._tell_room)

    def _on_room(self) -> None:
        if self._left:
            asyncio.get_running_loop().call_later(LEFT_S, self._tell_room)
        self._look_whether_spent()

    def _look_whether_spent(self) -> None:
        if self.rooms.is_spent and self.executor.is_done:
            self.spent.set()

    def _tell_room(self) -> None:
        if self.is_running and self.executor.abandoned != self._left:
            self.intake.reopen()

    # What it is told ----------------------------------------------------------------------------

    def _on_message(self, message: pb.StreamJobsResponse) -> None:
        if not (message.beat or message.assignments):
            # The first of a stream.
            self._type_warnings.warn(message)
        if message.beat:
            self.heartbeat.beat()
        if message.assignments:
            self._take(message.assignments)

    def _take(self, assigned: Iterable[pb.Assignment]) -> None:
        lanes: dict[str, list[Assignment]] = {}
        leases: dict[tuple[int, int], list[Claim]] = {}
        timeouts: dict[Claim, float] = {}
        waited_ms = int(self._pulse.waited_s * 1000)
        jobs_left = self.rooms.jobs_left
        for one in assigned:
            claim = Claim(next(self._seqs), UUID(one.job_id), one.attempt)
            job_type = analysis_of(one.job_type) if one.is_analysis else one.job_type
            handler = self._handlers.get(job_type)
            steps = {step.name: step.result for step in one.steps}
            most = 0 if handler is None else handler.max_retries
            self.ledger.take(InHand(claim, one.job_id, one.retries, most, steps))
            left_ms = one.lease_left_ms - waited_ms
            leases.setdefault((one.lease_ms, left_ms), []).append(claim)
            if handler is None:
                said = f"this worker has no handler for {one.job_type!r}"
                error = own_error_json("UnknownJobType", said)
                self.completer.add(Verdict(claim, "fail", error=error))
                continue
            if not self.is_running or left_ms <= 0 or jobs_left == 0:
                # Told to stop, has run all it may, or so late that others may have it by now.
                self._late.add(claim)
                if not self.is_running or jobs_left == 0:
                    self._give_back(claim)
                else:
                    # Later: as long as all is taken to be late, it would only be sent anew.
                    asyncio.get_running_loop().call_later(AFTER_S, self._give_back, claim)
                continue
            if jobs_left is not None:
                jobs_left -= 1
            if one.timeout_ms:
                timeouts[claim] = one.timeout_ms / 1000
            lanes.setdefault(one.lane, []).append(read_assignment(claim, job_type, one))
        for (lease_ms, left_ms), claims in leases.items():
            self.heartbeat.hold(claims, lease_ms / 1000, (lease_ms - left_ms) / 1000)
        for lane, assignments in lanes.items():
            self._start(lane, assignments, timeouts)
        if lanes and self.rooms.is_spent:
            self.intake.reopen()

    def _give_back(self, claim: Claim) -> None:
        if claim in self._late:
            self._late.remove(claim)
            self.completer.add(Verdict(claim, "release"))

    def _start(
        self, lane: str, assignments: list[Assignment], timeouts: dict[Claim, float]
    ) -> None:
        kinds = Counter(self._handlers[one.job_type].isolation for one in assignments)
        for kind, count in kinds.items():
            self.rooms.take(lane, kind, count)
        self._counting.claimed(lane, assignments)
        self.executor.start(assignments, lane, timeouts)

    def _on_settled(self, verdicts: list[Verdict], answers: list[WriteResult]) -> None:
        claims = [verdict.claim for verdict in verdicts]
        self.heartbeat.forget(claims)
        self.ledger.forget(claims)
        self._counting.settled(verdicts, answers)
        self._look_whether_spent()

    def _on_void(self, claim: Claim) -> None:
        """It was no longer ours to settle; should that be a server's mistake, the lease lapses."""
        self.heartbeat.forget([claim])
        self.ledger.forget([claim])
        self._counting.void(claim)

    def _on_report(self, answer: WriteResult) -> None:
        self._stop_run(answer.seq, answer.attempt, answer.answer, "report")

    def _on_heartbeat(self, seq: int, attempt: int, answer: str) -> None:
        if answer == "lost":
            self._forget_lost()
            self._lost += [(time.monotonic(), claim) for claim in self.ledger.named(seq)]
        self._stop_run(seq, attempt, answer, "heartbeat")

    def _stop_run(self, seq: int, attempt: int, answer: str, write: str) -> None:
        self._counting.refused(write, answer)
        self.executor.stop_by_claim(seq, attempt, answer)
