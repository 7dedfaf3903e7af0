"""Shared by all streams of a server process: connections, polls, results and leader services.

Four database connections serve any number of workers: one claims, one settles, one listens, and one
does the rest. Calls have two more: for heartbeats and for limits (service.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Final
from uuid import UUID, uuid4

from laneway.config.settings import Settings
from laneway.domain.claim import Claim
from laneway.engine.claim.floors import Floors
from laneway.engine.claim.poller import Poller
from laneway.engine.claim.wakeups import Wakeups
from laneway.engine.leader.services import LeaderServices, server_info
from laneway.engine.lease.attempt_store import DatabaseAttemptStore
from laneway.engine.lease.completer import Completer
from laneway.engine.service import Service
from laneway.errors import DatabaseUnavailable, Forbidden, LanewayError
from laneway.observability.log_throttle import LogThrottle
from laneway.observability.safe_logger import SafeLogger
from laneway.rpc.server.assignments import Assigned, Assignments
from laneway.rpc.server.dispatcher import Dispatcher
from laneway.rpc.server.handshake import StreamHandshake
from laneway.rpc.server.presence import Presence
from laneway.rpc.server.registration import (
    check_coverage,
    find_ignored,
    register_types,
    stream_info,
)
from laneway.rpc.server.resources import DispatchResources, RemoteMetrics
from laneway.rpc.server.result_batcher import ResultBatcher
from laneway.rpc.server.round_robin import RoundRobin
from laneway.rpc.server.stream_caller import StreamCaller
from laneway.store import lanes, remote, workers
from laneway.store.database import Database
from laneway.store.leases import Verdict, WriteResult
from laneway.store.waker import Waker

log = SafeLogger("laneway")

STOP_S: Final = 2.0
# The size of a message without its assignments.
FRAME_BYTES: Final = 1024


class DispatchServer:
    """`start`, then `open` a dispatcher for each stream, then `stop`."""

    def __init__(
        self, dsn: str | Callable[[], str], settings: Settings, *, name: str | None = None
    ) -> None:
        self.id: UUID = uuid4()
        self.name = name or f"{socket.gethostname()}:{os.getpid()} server"
        self.settings = settings
        self.is_running = False
        self._dsn = dsn
        self._warnings = LogThrottle()
        self._metrics = RemoteMetrics()
        # The lanes, as last read.
        self.state = lanes.ControlState(0, False, {})
        self._dispatchers: dict[UUID, Dispatcher] = {}
        self._opening = asyncio.Lock()
        self._refreshing: asyncio.Task[None] | None = None
        self._services: tuple[Service, ...] = ()
        self.assignments = Assignments()
        self._build()

    # Building ---------------------------------------------------------------------------------

    def _build(self) -> None:
        settings, warnings = self.settings, self._warnings
        self._claims = Database(self._dsn, settings, role="claim", size=1)
        self._settles = Database(self._dsn, settings, role="settle", size=1)
        # Also for progress updates of workers.
        self.database = Database(self._dsn, settings, role="dispatch", size=1)
        self._metrics.watch(self._claims, self._settles, self.database)
        self._peers = Waker.of_peers(self.database)
        self.completer = Completer(DatabaseAttemptStore(self._settles), warnings, self._on_settled)
        self._result_batcher = ResultBatcher(self.completer)
        self.round_robin = RoundRobin(lambda job_type: self.state.lane_of(job_type))
        self._shared = DispatchResources(
            claims=self._claims,
            rest=self.database,
            completer=self.completer,
            metrics=self._metrics,
            warnings=warnings,
            assignments=self.assignments,
            round_robin=self.round_robin,
            state=lambda: self.state,
            refresh=self.refresh,
            wake_peers=self._peers.wake,
            max_bytes=settings.grpc_assignment_bytes - FRAME_BYTES,
        )
        self.poller = Poller(self.database, warnings, self)
        self.presence = Presence(
            self.database,
            warnings,
            self.id,
            lambda: self._dispatchers.values(),
            self.assignments,
            self.free_room,
            self._release,
        )
        self.leader_services = LeaderServices(
            self.database, settings, warnings, self.id, self.announce
        )

    async def start(self) -> None:
        """Connects and starts the leader services; raises DatabaseUnavailable."""
        try:
            await self.database.run(workers.register(server_info(self.id, self.name)))
            await self.refresh()
        except BaseException:
            await self._close()
            raise
        self.listening = Wakeups(
            self.database.dsn, self.settings, self._warnings, self._on_message, self._on_listening
        )
        listening = (self.listening,) if self.settings.can_listen else ()
        self._services = (self.completer, self.poller, self.presence, *listening)
        for service in self._services:
            service.start()
        if self.settings.server_leads:
            self.leader_services.start()
        self.is_running = True

    # Streams ----------------------------------------------------------------------------------

    @asynccontextmanager
    async def serve(
        self, handshake: StreamHandshake, caller: StreamCaller
    ) -> AsyncIterator[Dispatcher]:
        """Opens a stream and closes it at the end."""
        dispatcher = await self.open(handshake, caller)
        try:
            yield dispatcher
        finally:
            await dispatcher.close()

    async def open(self, handshake: StreamHandshake, caller: StreamCaller) -> Dispatcher:
        """Opens a stream for the worker; it replaces any older one on any replica.

        Raises Forbidden if the worker's id belongs to another principal or its token covers none
        of its job types; also InvalidInput and DatabaseUnavailable.
        """
        async with self._opening:
            if not self.is_running:
                raise DatabaseUnavailable("this server is stopping")
            return await self._open(handshake, caller)

    async def _open(self, handshake: StreamHandshake, caller: StreamCaller) -> Dispatcher:
        names = [one.name for one in handshake.types]
        published = await self.database.run(remote.read_types(names))
        dispatcher = Dispatcher(handshake, caller, self._shared, self._on_closed)
        stream = stream_info(handshake, caller, dispatcher.stream_id)
        is_drained = await self.database.run(remote.register(stream))
        if is_drained is None:
            raise Forbidden(f"worker_id: {handshake.worker_id} belongs to another principal")
        try:
            older = self._dispatchers.get(handshake.worker_id)
            if older is not None:
                await older.replace()
            state = await register_types(self.database, handshake, caller, published.keys())
            dispatcher.uncovered = check_coverage(handshake, caller, state)
            dispatcher.ignored = await find_ignored(self.database, handshake, dispatcher.uncovered)
            timeouts = await self.database.run(remote.read_types(names))
            dispatcher.take_timeouts(timeouts)
            if state.version != self.state.version:
                await self.refresh()
            await self._take_over(handshake, dispatcher)
            if not self.is_running:
                raise DatabaseUnavailable("this server is stopping")
        except BaseException:
            self.presence.leave(dispatcher.worker_id, dispatcher.stream_id)
            raise
        dispatcher.is_drained = is_drained
        self._dispatchers[handshake.worker_id] = dispatcher
        dispatcher.serve(self.state)
        served_lanes = (
            ", ".join(sorted(dispatcher.lanes)) if handshake.max_in_flight else "none: it stops"
        )
        log.info(
            "remote worker %s of %s serves lanes %s", handshake.name, caller.name, served_lanes
        )
        # One poll finds work for all workers that connect together.
        self.poller.wake()
        self.presence.wake()
        return dispatcher

    async def _take_over(self, handshake: StreamHandshake, dispatcher: Dispatcher) -> None:
        """Continues the attempts that the worker holds, and releases its others as lost."""
        read_at = time.monotonic()
        leases = await self.database.run(remote.read_leases([handshake.worker_id]))
        dispatcher.adopt(leases)
        kept = [one for one in leases if (one.claim.job_id, one.claim.attempt) in handshake.holds]
        dispatcher.keep(kept, read_at)
        self._release({one.claim for one in leases} - {one.claim for one in kept})

    def _on_closed(self, dispatcher: Dispatcher) -> None:
        if self._dispatchers.get(dispatcher.worker_id) is dispatcher:
            del self._dispatchers[dispatcher.worker_id]
        gone = [one.claim for one in self.assignments if one.dispatcher is dispatcher]
        self.assignments.drop(gone)
        self._metrics.left(gone)
        log.info("the stream of remote worker %s ended (%s)", dispatcher.name, dispatcher.end)
        if dispatcher.end != "replaced":
            self.presence.leave(dispatcher.worker_id, dispatcher.stream_id)

    # Results ----------------------------------------------------------------------------------

    async def settle(self, verdicts: Sequence[Verdict], within_s: float) -> list[WriteResult]:
        """Ends attempts, together with those of other calls; one answer for each, in order.

        busy: not settled in time. DatabaseUnavailable: none was settled in time. An unanswered
        result may have been stored; sending it again gives the same answer.
        """
        return await self._result_batcher.settle(verdicts, within_s)

    def stream_of(self, worker_id: UUID, principal_id: UUID) -> Dispatcher | None:
        """The open stream of a worker, if it belongs to this principal."""
        found = self._dispatchers.get(worker_id)
        return found if found is not None and found.principal_id == principal_id else None

    def renewed(self, claims: Iterable[Claim], asked_at: float) -> None:
        """Notes that calls at that time renewed the leases of these attempts."""
        by_stream: dict[Dispatcher, list[Claim]] = {}
        for one in filter(None, map(self.assignments.of, claims)):
            by_stream.setdefault(one.dispatcher, []).append(one.claim)
        for dispatcher, ones in by_stream.items():
            dispatcher.liveness.renewed(ones, asked_at)

    def free_room(self, claims: Iterable[Claim]) -> None:
        """Frees the room of attempts that have ended."""
        found = [one for one in map(self.assignments.pop, claims) if one is not None]
        self._metrics.left(one.claim for one in found)
        self._freed(found)

    def _freed(self, ended: Iterable[Assigned]) -> None:
        by_stream: dict[Dispatcher, list[Assigned]] = {}
        for one in ended:
            by_stream.setdefault(one.dispatcher, []).append(one)
        for dispatcher, ones in by_stream.items():
            dispatcher.ended(ones)
        if by_stream:
            self.round_robin.has_room()

    def _release(self, claims: Iterable[Claim]) -> None:
        for claim in claims:
            self.completer.add(Verdict(claim, "release"))

    def _on_settled(self, verdicts: list[Verdict], answers: list[WriteResult]) -> None:
        self._result_batcher.settled(verdicts, {(one.seq, one.attempt): one for one in answers})
        self._metrics.settled(verdicts, answers)
        assigned = [self.assignments.pop(verdict.claim) for verdict in verdicts]
        self._freed(one for one in assigned if one is not None)
        again = ("approved", "pending", "waiting")
        if any(one.answer == "arrived" or one.status in again for one in answers):
            self.poller.wake()
        woken = {str(one.status) for one in answers if one.answer in ("promoted", "freed")}
        if woken:
            self.announce(woken)
        self.round_robin.has_slots()

    # Notifications ----------------------------------------------------------------------------

    async def refresh(self) -> None:
        """Reads the lanes and updates all streams; concurrent callers share one read."""
        if self._refreshing is None:
            self._refreshing = asyncio.get_running_loop().create_task(self._refresh())
            self._refreshing.add_done_callback(self._refreshed)
        await asyncio.shield(self._refreshing)

    def _refreshed(self, task: asyncio.Task[None]) -> None:
        self._refreshing = None
        if not task.cancelled():
            # Callers get the error; if none is left, this marks it as retrieved.
            task.exception()

    async def _refresh(self) -> None:
        self.state = state = await self.database.run(lanes.read())
        self.leader_services.scheduler.wake()
        for dispatcher in list(self._dispatchers.values()):
            dispatcher.serve(state)
        self.round_robin.wake_all()

    def lane_of(self, job_type: str) -> str:
        """The lane of a job type in this replica's current state."""
        return self.state.lane_of(job_type)

    def job_types(self) -> list[str]:
        return sorted({one for each in self._dispatchers.values() for one in each.job_types})

    def floors(self) -> list[Floors]:
        return list(self._shared.floors.values())

    def on_work(self, job_types: set[str]) -> None:
        self.round_robin.wake(job_types)

    def on_foreign_work(self, job_types: set[str]) -> None:
        self._peers.wake(job_types)

    def announce(self, job_types: set[str]) -> None:
        """Wakes streams and peers for work that no notification announced."""
        self.round_robin.wake(job_types)
        self.poller.wake()
        self._peers.wake(job_types)

    def _on_listening(self) -> None:
        self.round_robin.wake_all()

    def _on_message(self, text: str) -> None:
        word, _, rest = text.partition(" ")
        match word:
            case "wake":
                self.poller.hint()
                if rest == "*":
                    self.round_robin.wake_all()
                else:
                    self.round_robin.wake(rest.split("\x1f"))
            case "turn":
                # Remote workers of this replica may take free room under a limit.
                called = filter(None, map(self._dispatcher, rest.split()))
                self.round_robin.wake({each for one in called for each in one.job_types})
            case "schedules":
                self.leader_services.scheduler.wake()
            case "cancel" if dispatcher := self._dispatcher(rest):
                dispatcher.beat()
            case "session":
                worker_id, _, stream_id = rest.partition(" ")
                dispatcher = self._dispatcher(worker_id)
                if dispatcher is not None and str(dispatcher.stream_id) != stream_id:
                    # The message may be older than our stream: the database decides.
                    self.presence.touch_now()
            case "drain" if self._dispatcher(rest):
                self.presence.touch_now()

    def _dispatcher(self, worker_id: str) -> Dispatcher | None:
        try:
            return self._dispatchers.get(UUID(worker_id))
        except ValueError:
            return None

    # Stopping ---------------------------------------------------------------------------------

    async def stop_claiming(self) -> None:
        """Ends streams once all claimed jobs are sent; calls are still served."""
        self.is_running = False
        await asyncio.gather(*(one.stop_claiming() for one in self._dispatchers.values()))

    async def stop(self, grace_s: float = STOP_S) -> None:
        """Stops claiming, stores results that have arrived, resigns and disconnects."""
        await self.stop_claiming()
        await asyncio.gather(*(one.close() for one in list(self._dispatchers.values())))
        self.round_robin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                while self.completer.backlog:
                    await self.completer.settled.wait()
        with contextlib.suppress(LanewayError, TimeoutError):
            async with asyncio.timeout(STOP_S):
                await self.presence.cancel()
                await self.presence.run_once()
                await self.leader_services.resign()
                await self.database.run(workers.stop(self.id))
        for service in self._services:
            await service.cancel()
        await self.leader_services.cancel()
        await self._close()

    async def _close(self) -> None:
        self.round_robin.close()
        self._metrics.close()
        await self._peers.close(send=False)
        for database in (self._claims, self._settles, self.database):
            await database.close()
