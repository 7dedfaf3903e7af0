"""A worker without a database: receives jobs from a server and runs them with the executor."""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import ClassVar, Final
from uuid import UUID

from laneway import __version__
from laneway.config.settings import Settings
from laneway.domain.approval import analysis_of
from laneway.domain.claim import Claim
from laneway.domain.token import expiry_text
from laneway.engine.claim.claim_ahead import KIND as AHEAD_KIND
from laneway.engine.claim.claim_ahead import ClaimAhead
from laneway.engine.claim.start_lines import named, room_text
from laneway.engine.process.memory import resident_bytes
from laneway.engine.registry import Registry
from laneway.engine.run.attempt import Run
from laneway.engine.run.attempt_outcomes import own_error_json
from laneway.engine.runtime import STOP_S, AttemptWrites, WorkerRuntime
from laneway.errors import ConfigError
from laneway.observability.safe_logger import SafeLogger
from laneway.rpc import IS_LATE
from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc.messages import isolations_of, read_assignment, write_job_type
from laneway.rpc.worker.attempt_store import HeldAttempt, RemoteAttemptStore
from laneway.rpc.worker.connection import ReplicaConnection
from laneway.rpc.worker.endpoint import Endpoint
from laneway.rpc.worker.heartbeat import RemoteHeartbeat
from laneway.rpc.worker.job_stream import AssignmentStream
from laneway.rpc.worker.loop_lag import AFTER_S, LoopLag
from laneway.rpc.worker.type_warnings import TypeWarnings
from laneway.store.leases import Assignment, Verdict, WriteResult

log = SafeLogger("laneway")

# A change of abandoned handlers is reported after this delay: a fenced handler gets that long to
# stop, and handlers that return within it are reported together.
LEFT_S: Final = 1.0
FLUSH_S: Final = 0.1
# By then a lease that lapsed by our clock has also lapsed by the database's.
LOST_S: Final = 15.0


class RemoteWorker(WorkerRuntime):
    """Runs the handlers of a registry for a server; `start`, then `stop`."""

    kind: ClassVar[str] = "remote worker"

    def __init__(
        self,
        registry: Registry,
        settings: Settings,
        endpoint: Endpoint,
        *,
        name: str | None = None,
        app: str | None = None,
        max_jobs: int | None = None,
    ) -> None:
        super().__init__(settings, registry, name=name, app=app, max_jobs=max_jobs)
        self._endpoint = endpoint
        self._seqs = itertools.count(1)
        # Lapsed by our clock; no server has confirmed it yet.
        self._lost: deque[tuple[float, pb.Claim]] = deque()
        # Received too late, and not yet released.
        self._late: set[Claim] = set()
        # Abandoned handlers by isolation, as last sent to a server.
        self._abandoned: Counter[str] = Counter()
        self._type_warnings = TypeWarnings()
        self._expiry = ""

    # Building -----------------------------------------------------------------------------------

    def _may_start(self) -> bool:
        if not len(self.registry):
            raise ConfigError(self.registry.why_empty)
        if IS_LATE:
            log.warning(
                "grpc was imported before laneway.rpc: set GRPC_ENABLE_FORK_SUPPORT=0,"
                " or starting another program may break its connections"
            )
        return True

    async def _open(self) -> AttemptWrites:
        self._connection = ReplicaConnection(self._endpoint)
        self.attempt_store = RemoteAttemptStore(
            self._connection, str(self.id), lambda: self._allowed_ahead()
        )
        heartbeat = RemoteHeartbeat(
            self._endpoint, self.id, self.settings, self._warnings, self._on_heartbeat
        )
        return AttemptWrites(self.attempt_store, self.attempt_store, heartbeat)

    def _build(self) -> None:
        self._handlers = {handler.job_type: handler for handler in self.registry.runnable}
        used = {handler.isolation for handler in self._handlers.values()}
        self._sizes = {kind: size for kind, size in self.capacity.sizes.items() if kind in used}
        self._loop_lag = LoopLag()
        self._ahead = ClaimAhead(self.capacity, self.executor, self._give_back)
        # A set `concurrency` bounds all jobs that it holds.
        self._is_open = "concurrency" not in self.settings.model_fields_set
        self._reserved: dict[str, set[str]] = {}
        self.job_stream = AssignmentStream(
            self._connection,
            self._warnings,
            self._handshake,
            self._on_message,
            lambda: self.heartbeat.is_answering,
        )
        self.heartbeat.on_frozen = self.job_stream.reopen
        self._types = [write_job_type(record) for record in self.registry.records()]

    @property
    def hint(self) -> str:
        return "is --server (LANEWAY_GRPC_SERVER) a running server with --grpc?"

    async def _connect(self) -> None:
        """Check that a server accepts the token; raises its Unauthenticated or Forbidden."""
        await self._connection.check(str(self.id))

    async def _receive(self) -> None:
        self._loop_lag.start()
        self.job_stream.start()
        await self.job_stream.first
        if self.registry.schedules:
            log.warning(
                "a remote worker does not create schedules: %s",
                ", ".join(sorted(self.registry.schedules)),
            )
        if self.registry.end_hooks:
            log.warning(
                "a remote worker does not publish end hooks, it only runs their jobs: %s. Start a"
                " worker with a database once",
                ", ".join(sorted(self.registry.end_hooks)),
            )
        if self.registry.lanes or self.registry.limits:
            log.warning(
                "a remote worker does not create declared lanes and limits: %s",
                ", ".join([*(one.name for one in self.registry.lanes), *self.registry.limits]),
            )
        # The server and the token decide which of these types it gets.
        log.info(
            "remote worker %s receives jobs from %s: laneway %s, %s (%s)",
            self.name,
            self._connection.address,
            __version__,
            room_text(self.settings, self.registry),
            named(self.registry.job_types),
        )

    def problem(self) -> str | None:
        found = super().problem()
        if found is None and not self.job_stream.registered.is_set():
            return "no server is connected"
        return found

    # Stopping -----------------------------------------------------------------------------------

    async def _stop_receiving(self) -> None:
        self._ahead.return_all()
        for claim in list(self._late):
            self._release_late(claim)
        await self.job_stream.drain(STOP_S)

    async def _leave(self, released: set[str], until: float, hurry: asyncio.Event | None) -> None:
        # Servers may restart at the same time: keep sending results while there is time.
        while self.completer.backlog and time.monotonic() < until:
            if hurry is not None and hurry.is_set():
                break
            await self.completer.flush(FLUSH_S)

    async def _cancel_services(self) -> None:
        self._loop_lag.stop()
        await self.job_stream.cancel()

    async def _disconnect(self) -> None:
        await self._connection.close()

    # The handshake ------------------------------------------------------------------------------

    def _handshake(self) -> pb.StreamJobsRequest:
        self._forget_lost()
        self._abandoned = self.executor.abandoned
        room: dict[str, int] = {
            kind: max(0, size - self._abandoned[kind]) for kind, size in self._sizes.items()
        }
        # 0 would mean no bound: leave out types that need a full isolation.
        full = {kind for kind, left in room.items() if not left}
        open_types = [one for one in self._types if full.isdisjoint(isolations_of(one))]
        return pb.StreamJobsRequest(
            worker_id=str(self.id),
            name=self.name,
            job_types=open_types or self._types,
            max_in_flight=self.capacity.cap(sum(room.values()), self._abandoned.total())
            if self.is_running
            else 0,
            max_async=room.get("async", 0),
            max_threads=room.get("thread", 0),
            max_processes=room.get("process", 0),
            # The watchdog takes lost attempts back; the server must not release them uncharged.
            holds=[*self.attempt_store.holds(), *(claim for _, claim in self._lost)],
            host=socket.gethostname(),
            pid=os.getpid(),
            code=__version__,
            memory_bytes=resident_bytes() or 0,
        )

    def _forget_lost(self) -> None:
        while self._lost and time.monotonic() - self._lost[0][0] > LOST_S:
            self._lost.popleft()

    def on_abandoned(self, run: Run) -> None:
        """Reports an abandoned handler: it takes room here although its job has ended."""
        loop = asyncio.get_running_loop()
        loop.call_later(LEFT_S if run.stop_reason == "fenced" else 0.0, self._report_room)

    def on_room(self) -> None:
        if self._abandoned:
            asyncio.get_running_loop().call_later(LEFT_S, self._report_room)
        self._ahead.feed_soon()
        super().on_room()

    def _report_room(self) -> None:
        if self.is_running and self.executor.abandoned != self._abandoned:
            self.job_stream.reopen()

    # Messages and answers -----------------------------------------------------------------------

    def _on_message(self, message: pb.StreamJobsResponse) -> None:
        if not (message.beat or message.assignments):
            # The first message of a stream.
            self._type_warnings.warn(message)
        if message.HasField("token_expires_in_ms"):
            self._warn_of_expiry(message.token_expires_in_ms / 1000)
        if message.beat:
            self.heartbeat.beat()
        if message.assignments:
            self._take(message.assignments)

    def _warn_of_expiry(self, left_s: float) -> None:
        """Logs that the token expires soon, once for each number of days or hours left."""
        if (text := expiry_text(left_s)) != self._expiry:
            self._expiry = text
            log.warning(
                "the token of %s %s: create another with `laneway tokens create`",
                self._endpoint.token.source,
                text,
            )

    def _take(self, assigned: Iterable[pb.Assignment]) -> None:
        # By lane and whether they may wait for room.
        lanes: dict[tuple[str, bool], list[Assignment]] = {}
        leases: dict[tuple[int, int], list[Claim]] = {}
        timeouts: dict[Claim, float] = {}
        waited_ms = int(self._loop_lag.waited_s * 1000)
        jobs_left = self.capacity.jobs_left
        for one in assigned:
            job_id = one.job_id
            claim = Claim(next(self._seqs), UUID(job_id), one.attempt)
            job_type = analysis_of(one.job_type) if one.is_analysis else one.job_type
            handler = self._handlers.get(job_type)
            most = 0 if handler is None else handler.max_retries
            assignment = read_assignment(claim, job_type, one, most)
            steps = {step.name: step.result for step in one.steps} if one.steps else {}
            self.attempt_store.take(
                HeldAttempt(
                    *(claim, job_id, assignment.retries, assignment.max_retries, steps),
                    one.can_wait,
                )
            )
            left_ms = one.lease_left_ms - waited_ms
            leases.setdefault((one.lease_ms, left_ms), []).append(claim)
            if handler is None:
                message = f"this worker has no handler for {one.job_type!r}"
                error = own_error_json("UnknownJobType", message)
                self.completer.add(Verdict(claim, "fail", error=error))
                continue
            if not self.is_running or left_ms <= 0 or jobs_left == 0:
                # The worker stops or has run all its jobs, or the lease may have lapsed by now.
                self._late.add(claim)
                if not self.is_running or jobs_left == 0:
                    self._release_late(claim)
                else:
                    # Not at once: until the lag is over, the server would only send it again.
                    asyncio.get_running_loop().call_later(AFTER_S, self._release_late, claim)
                continue
            if jobs_left is not None:
                jobs_left -= 1
            if timeout_ms := one.timeout_ms:
                timeouts[claim] = timeout_ms / 1000
            may_wait = one.is_ahead and handler.isolation == AHEAD_KIND
            lanes.setdefault((one.lane, may_wait), []).append(assignment)
        for (lease_ms, left_ms), claims in leases.items():
            self.heartbeat.hold(claims, lease_ms / 1000, (lease_ms - left_ms) / 1000)
        for (lane, may_wait), assignments in lanes.items():
            if may_wait:
                self._reserve(lane)
                self._ahead.put(lane, assignments, timeouts)
                self._metrics.claimed(lane, assignments)
            else:
                self._start(lane, assignments, timeouts)
        if lanes and self.capacity.is_spent:
            self.job_stream.reopen()

    def _reserve(self, lane: str) -> None:
        """Leave a place to every other lane while jobs of this lane wait for room."""
        if lane not in self._reserved:
            self._reserved[lane] = {AHEAD_KIND}
            self.capacity.serve(self._reserved)

    def _allowed_ahead(self) -> dict[str, int]:
        """By lane, how many jobs it takes beyond max_in_flight now."""
        if not self._is_open or not self.is_running:
            return {}
        return self._ahead.targets(unsettled=self.completer.backlog)

    def _give_back(self, jobs: Sequence[Assignment]) -> None:
        for job in jobs:
            self.completer.add(Verdict(job.claim, "release"))

    def _stop_run(self, seq: int, attempt: int, answer: str, write: str) -> None:
        self._ahead.stop(seq, attempt, answer)
        super()._stop_run(seq, attempt, answer, write)

    def _release_late(self, claim: Claim) -> None:
        if claim in self._late:
            self._late.remove(claim)
            self.completer.add(Verdict(claim, "release"))

    def _start(
        self, lane: str, assignments: list[Assignment], timeouts: dict[Claim, float]
    ) -> None:
        kinds = Counter([self._handlers[one.job_type].isolation for one in assignments])
        if AHEAD_KIND in kinds:
            self._reserve(lane)
        for kind, count in kinds.items():
            self.capacity.take(lane, kind, count)
        self.executor.start(assignments, lane, timeouts)
        self._metrics.claimed(lane, assignments)

    def _on_settled(self, verdicts: list[Verdict], answers: list[WriteResult]) -> None:
        self.attempt_store.forget(verdict.claim for verdict in verdicts)
        super()._on_settled(verdicts, answers)

    def on_void(self, claim: Claim) -> None:
        """Forgets an attempt that is not ours any more; its lease lapses anyway."""
        self.heartbeat.forget([claim])
        self.attempt_store.forget([claim])
        super().on_void(claim)

    def _on_heartbeat(self, seq: int, attempt: int, answer: str) -> None:
        if answer == "lost":
            self._forget_lost()
            self._lost += [(time.monotonic(), claim) for claim in self.attempt_store.named(seq)]
        super()._on_heartbeat(seq, attempt, answer)
