"""What all streams of a server process share: connections, polls, results, the leader's duties.

Four database connections, however many workers are connected: one claims, one settles, one for all
the rest, and one listens. Calls have two more: for heartbeats, and for limits (service.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Final
from uuid import UUID, uuid4

from laneway.config.settings import Settings
from laneway.domain.claim import Claim
from laneway.engine.claim.peer_wakeups import PeerWakeups
from laneway.engine.claim.poller import Poller
from laneway.engine.claim.wakeups import Wakeups
from laneway.engine.leader.services import LeaderServices
from laneway.engine.lease.attempt_store import DatabaseAttemptStore
from laneway.engine.lease.completer import Completer
from laneway.engine.process.throttled_warnings import ThrottledWarnings
from laneway.engine.service import Service
from laneway.errors import DatabaseUnavailable, Forbidden, LanewayError
from laneway.rpc.server.assignments import Assignments
from laneway.rpc.server.dispatcher import Dispatcher
from laneway.rpc.server.handshake import StreamHandshake
from laneway.rpc.server.presence import Presence
from laneway.rpc.server.registration import check_reach, find_ignored, make_known
from laneway.rpc.server.resources import DispatchResources, RemoteMetrics
from laneway.rpc.server.result_batcher import ResultBatcher
from laneway.rpc.server.round_robin import RoundRobin
from laneway.rpc.server.stream_caller import StreamCaller
from laneway.store import lanes, remote
from laneway.store.database import Database
from laneway.store.leases import Verdict, WriteResult
from laneway.store.remote import StreamInfo

log = logging.getLogger("laneway")

STOP_S: Final = 2.0
# What a message takes beside its assignments.
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
        self._complaints = ThrottledWarnings()
        self._counting = RemoteMetrics()
        self._state = lanes.ControlState(0, False, {})
        self._dispatchers: dict[UUID, Dispatcher] = {}
        self._opening = asyncio.Lock()
        self._refreshing: asyncio.Task[None] | None = None
        self._services: tuple[Service, ...] = ()
        self.assignments = Assignments()
        self._build()

    # Building ---------------------------------------------------------------------------------

    def _build(self) -> None:
        settings, complaints = self.settings, self._complaints
        self._claims = Database(self._dsn, settings, role="claim", size=1)
        self._settles = Database(self._dsn, settings, role="settle", size=1)
        # For what workers say beside their results as well.
        self.database = Database(self._dsn, settings, role="dispatch", size=1)
        self._counting.watch(self._claims, self._settles, self.database)
        self._neighbours = PeerWakeups(self.database)
        self.completer = Completer(
            DatabaseAttemptStore(self._settles), complaints, self._on_settled
        )
        self._settling = ResultBatcher(self.completer)
        self.rotation = RoundRobin(lambda job_type: self._state.lane_of(job_type))
        self._shared = DispatchResources(
            claims=self._claims,
            rest=self.database,
            completer=self.completer,
            counting=self._counting,
            complaints=complaints,
            assignments=self.assignments,
            rotation=self.rotation,
            state=lambda: self._state,
            refresh=self.refresh,
            tell_others=self._neighbours.wake,
            max_bytes=settings.grpc_assignment_bytes - FRAME_BYTES,
        )
        self.poller = Poller(
            self.database,
            complaints,
            self._job_types,
            lambda: list(self._shared.floors.values()),
            lambda: self._state,
            self.refresh,
            self.rotation.tell,
            self._neighbours.wake,
        )
        self.presence = Presence(
            self.database,
            complaints,
            self.id,
            lambda: self._dispatchers.values(),
            self.assignments,
            self.lost,
            self._release,
        )
        self.duties = LeaderServices(
            self.database, settings, complaints, self.id, self.name, self._on_work
        )

    async def start(self) -> None:
        """Connects, and begins the leader's duties; raises DatabaseUnavailable."""
        try:
            await self.duties.register()
            await self.refresh()
        except BaseException:
            await self._close()
            raise
        self.listening = Wakeups(
            self.database.dsn, self.settings, self._complaints, self._on_message, self._on_listening
        )
        listening = (self.listening,) if self.settings.can_listen else ()
        self._services = (self.completer, self.poller, self.presence, *listening)
        for service in self._services:
            service.start()
        if self.settings.server_leads:
            self.duties.start()
        self.is_running = True

    # Streams ----------------------------------------------------------------------------------

    @asynccontextmanager
    async def serve(
        self, hello: StreamHandshake, caller: StreamCaller
    ) -> AsyncIterator[Dispatcher]:
        """`open`, and `close` whatever happens."""
        dispatcher = await self.open(hello, caller)
        try:
            yield dispatcher
        finally:
            await dispatcher.close()

    async def open(self, hello: StreamHandshake, caller: StreamCaller) -> Dispatcher:
        """A stream for the worker, in place of any older one of it on any replica.

        Raises Forbidden (the worker's id is another principal's, or nothing is in reach),
        InvalidInput and DatabaseUnavailable.
        """
        async with self._opening:
            if not self.is_running:
                raise DatabaseUnavailable("this server stops")
            return await self._open(hello, caller)

    async def _open(self, hello: StreamHandshake, caller: StreamCaller) -> Dispatcher:
        names = [one.name for one in hello.types]
        published = await self.database.run(remote.read_types(names))
        dispatcher = Dispatcher(hello, caller, self._shared, self._on_closed)
        stream = _info(hello, caller, dispatcher.session)
        is_drained = await self.database.run(remote.register(stream))
        if is_drained is None:
            raise Forbidden(f"worker_id: {hello.worker_id} is another principal's worker")
        try:
            older = self._dispatchers.get(hello.worker_id)
            if older is not None:
                await older.replace()
            state = await make_known(self.database, hello, caller, published.keys())
            dispatcher.uncovered = check_reach(hello, caller, state)
            dispatcher.ignored = await find_ignored(self.database, hello, dispatcher.uncovered)
            timeouts = await self.database.run(remote.read_types(names))
            dispatcher.take_timeouts(timeouts)
            if state.version != self._state.version:
                await self.refresh()
            await self._take_over(hello, dispatcher)
            if not self.is_running:
                raise DatabaseUnavailable("this server stops")
        except BaseException:
            self.presence.leave(dispatcher.worker_id, dispatcher.session)
            raise
        dispatcher.is_drained = is_drained
        self._dispatchers[hello.worker_id] = dispatcher
        dispatcher.serve(self._state)
        served = ", ".join(sorted(dispatcher.lanes)) if hello.max_in_flight else "none, it stops"
        log.info("remote worker %s of %s is sent jobs of %s", hello.name, caller.name, served)
        # Whether there is work for it is asked once for all that come.
        self.poller.wake()
        self.presence.wake()
        return dispatcher

    async def _take_over(self, hello: StreamHandshake, dispatcher: Dispatcher) -> None:
        """What the worker holds goes on; what else it was assigned got lost on the way."""
        read_at = time.monotonic()
        leases = await self.database.run(remote.read_leases([hello.worker_id]))
        dispatcher.adopt(leases)
        kept = [one for one in leases if (one.claim.job_id, one.claim.attempt) in hello.holds]
        dispatcher.keep(kept, read_at)
        self._release({one.claim for one in leases} - {one.claim for one in kept})

    def _on_closed(self, dispatcher: Dispatcher) -> None:
        if self._dispatchers.get(dispatcher.worker_id) is dispatcher:
            del self._dispatchers[dispatcher.worker_id]
        gone = [one.claim for one in self.assignments if one.dispatcher is dispatcher]
        self.assignments.drop(gone)
        self._counting.left(gone)
        log.info("the stream of remote worker %s has ended (%s)", dispatcher.name, dispatcher.end)
        if dispatcher.end != "replaced":
            self.presence.leave(dispatcher.worker_id, dispatcher.session)

    # Results ----------------------------------------------------------------------------------

    async def settle(self, verdicts: Sequence[Verdict], within_s: float) -> list[WriteResult]:
        """Ends attempts, together with those of other calls; one answer for each, in order.

        busy: not settled in time. DatabaseUnavailable: nothing was. What was not answered may have
        been stored, and saying it again is answered alike.
        """
        return await self._settling.settle(verdicts, within_s)

    def weigh(self, worker_id: UUID, principal_id: UUID, memory_bytes: int | None) -> None:
        """What a worker says of its memory; told with its presence."""
        dispatcher = self._dispatchers.get(worker_id)
        if dispatcher is not None and dispatcher.principal_id == principal_id:
            dispatcher.memory_bytes = memory_bytes or dispatcher.memory_bytes

    def heard(self, worker_id: UUID, principal_id: UUID) -> None:
        """A call of the worker has come."""
        dispatcher = self._dispatchers.get(worker_id)
        if dispatcher is not None and dispatcher.principal_id == principal_id:
            dispatcher.heard()

    def renewed(self, claims: Iterable[Claim], asked_at: float) -> None:
        """The leases of these attempts were renewed for calls that came then."""
        by_stream: dict[Dispatcher, list[Claim]] = {}
        for one in filter(None, map(self.assignments.of, claims)):
            by_stream.setdefault(one.dispatcher, []).append(one.claim)
        for dispatcher, ones in by_stream.items():
            dispatcher.silence.renewed(ones, asked_at)

    def lost(self, claims: Iterable[Claim]) -> None:
        """These attempts are over: their room is free."""
        found = [one for one in map(self.assignments.pop, claims) if one is not None]
        self._counting.left(one.claim for one in found)
        for one in found:
            one.dispatcher.ended(one)
        if found:
            self.rotation.has_room()

    def _release(self, claims: Iterable[Claim]) -> None:
        for claim in claims:
            self.completer.add(Verdict(claim, "release"))

    def _on_settled(self, verdicts: list[Verdict], answers: list[WriteResult]) -> None:
        self._settling.settled(verdicts, {(one.seq, one.attempt): one for one in answers})
        self._counting.settled(verdicts, answers)
        self.lost(verdict.claim for verdict in verdicts)
        if any(answer.status in ("approved", "pending") for answer in answers):
            self.poller.wake()
        woken = {str(one.status) for one in answers if one.answer in ("promoted", "freed")}
        if woken:
            self._on_work(woken)
        self.rotation.has_slots()

    # News -------------------------------------------------------------------------------------

    async def refresh(self) -> None:
        """Reads the lanes; all streams serve them as they now are. Who asks meanwhile waits."""
        if self._refreshing is None:
            self._refreshing = asyncio.get_running_loop().create_task(self._refresh())
            self._refreshing.add_done_callback(self._refreshed)
        await asyncio.shield(self._refreshing)

    def _refreshed(self, task: asyncio.Task[None]) -> None:
        self._refreshing = None
        if not task.cancelled():
            # Whoever asked hears of it; if nobody is left to, it is told as read.
            task.exception()

    async def _refresh(self) -> None:
        self._state = state = await self.database.run(lanes.read())
        self.duties.scheduler.wake()
        for dispatcher in list(self._dispatchers.values()):
            dispatcher.serve(state)
        self.rotation.tell_all()

    def lane_of(self, job_type: str) -> str:
        """The lane of a job type, as far as this replica knows."""
        return self._state.lane_of(job_type)

    def _job_types(self) -> list[str]:
        return sorted({one for each in self._dispatchers.values() for one in each.job_types})

    def _on_work(self, job_types: set[str]) -> None:
        """There is work that a notification has not told."""
        self.rotation.tell(job_types)
        self.poller.wake()
        self._neighbours.wake(job_types)

    def _on_listening(self) -> None:
        self.rotation.tell_all()

    def _on_message(self, text: str) -> None:
        word, _, rest = text.partition(" ")
        match word:
            case "wake":
                self.poller.hint()
                if rest == "*":
                    self.rotation.tell_all()
                else:
                    self.rotation.tell(rest.split("\x1f"))
            case "turn":
                # Room under a limit is left to remote workers of this replica.
                called = filter(None, map(self._dispatcher, rest.split()))
                self.rotation.tell({each for one in called for each in one.job_types})
            case "schedules":
                self.duties.scheduler.wake()
            case "cancel" if dispatcher := self._dispatcher(rest):
                dispatcher.beat()
            case "session":
                worker_id, _, session = rest.partition(" ")
                dispatcher = self._dispatcher(worker_id)
                if dispatcher is not None and str(dispatcher.session) != session:
                    # It may be the newer one itself that hears late of the one before.
                    self.presence.touch_now()
            case "drain" if self._dispatcher(rest):
                self.presence.touch_now()

    def _dispatcher(self, worker_id: str) -> Dispatcher | None:
        try:
            return self._dispatchers.get(UUID(worker_id))
        except ValueError:
            return None

    # Taking down ------------------------------------------------------------------------------

    async def stop_claiming(self) -> None:
        """Streams end once what was claimed is sent; calls are still served."""
        self.is_running = False
        await asyncio.gather(*(one.stop_claiming() for one in self._dispatchers.values()))

    async def stop(self, grace_s: float = STOP_S) -> None:
        """Stops claiming, gives what was said a chance to be stored, resigns, disconnects."""
        await self.stop_claiming()
        await asyncio.gather(*(one.close() for one in list(self._dispatchers.values())))
        self.rotation.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                while self.completer.backlog:
                    await self.completer.settled.wait()
        with contextlib.suppress(LanewayError, TimeoutError):
            async with asyncio.timeout(STOP_S):
                await self.presence.cancel()
                await self.presence.run_once()
                await self.duties.resign()
        for service in self._services:
            await service.cancel()
        await self.duties.cancel()
        await self._close()

    async def _close(self) -> None:
        self.rotation.close()
        self._counting.close()
        await self._neighbours.close()
        for database in (self._claims, self._settles, self.database):
            await database.close()


def _info(hello: StreamHandshake, caller: StreamCaller, session: UUID) -> StreamInfo:
    return StreamInfo(
        id=hello.worker_id,
        session=session,
        principal_id=caller.principal_id,
        name=hello.name,
        host=hello.host,
        pid=hello.pid,
        code=hello.code,
        job_types=sorted(one.name for one in hello.types),
        lanes=None if caller.lanes is None else sorted(caller.lanes),
        concurrency=hello.max_in_flight,
        memory_bytes=hello.memory_bytes,
    )
