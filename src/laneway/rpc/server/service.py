"""The calls of remote workers: each is authenticated, read, executed and answered."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import grpc
from google.protobuf.message import Message

from laneway.config.settings import Settings
from laneway.control.job_type_health import DECLARATION_IGNORED, LIMIT_REFUSED
from laneway.domain.approval import is_analysis
from laneway.domain.claim import Claim
from laneway.errors import Forbidden, InvalidInput, LanewayError
from laneway.observability.counters import PROCESS
from laneway.observability.log_throttle import LogThrottle
from laneway.rpc import messages
from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc.messages import ANSWERS, ProgressUpdate
from laneway.rpc.server.assignment_queue import Beat
from laneway.rpc.server.auth import Authenticator, Context
from laneway.rpc.server.dispatch_server import DispatchServer
from laneway.rpc.server.dispatcher import Dispatcher
from laneway.rpc.server.handshake import bounded, read_handshake, read_memory
from laneway.rpc.server.limit_holds import RemoteLimitHolds
from laneway.rpc.server.ownership import OwnedAttempt
from laneway.rpc.server.served_calls import CALL_S
from laneway.rpc.server.stream_caller import StreamCaller
from laneway.rpc.server.wait_calls import WaitCalls
from laneway.rpc.server.writes import Writes
from laneway.store import call_limits
from laneway.store.database import Database
from laneway.store.leases import Verdict, WriteResult
from laneway.store.missing_limits import KnownLimits

# The longest time for retries of a write on a locked row.
BUSY_S: Final = 1.0
# An ended stream waits this long for its reader to take the last message.
UNREAD_S: Final = 10.0
_STOPPING: Final = "this server is stopping: connect to another one, or again in a moment"
_NO_CLAIM: Final = Claim(0, UUID(int=0), 0)
_RENEWED: Final = ("accepted", "cancel_requested")
_FENCED: Final = WriteResult(0, 0, "fenced")
_FENCED_UPDATE: Final = pb.Progressed(answer=pb.ANSWER_FENCED)
_AGAIN_UPDATE: Final = pb.Progressed(answer=pb.ANSWER_UNSPECIFIED)
_REPLACED: Final = "a newer stream of this worker_id has taken over"


class WorkerCalls(WaitCalls):
    """The dispatch service for the workers that are connected to one replica.

    Calls are served as streams of bytes: a request is received only after its token was checked,
    and parsed only after its parts were counted.
    """

    def __init__(
        self, dispatch: DispatchServer, authenticator: Authenticator, settings: Settings
    ) -> None:
        super().__init__(dispatch, authenticator, settings)
        # Separate connections: leases are renewed even while a limit's row is locked, or a large
        # batch of progress is stored.
        dsn = dispatch.database.dsn
        self._renewals = Database(dsn, settings, role="heartbeat", size=1)
        self._limit_calls = Database(dsn, settings, role="limits", size=1)
        self._known_limits = KnownLimits(self._limit_calls, "remote workers")
        self._writes = Writes(self._renewals, dispatch.database)
        self._limit_holds = RemoteLimitHolds(
            self._limit_calls, LogThrottle(), settings.remote_limit_hold
        )
        self._limit_holds.start()

    async def close(self) -> None:
        await super().close()
        await self._limit_holds.cancel()
        await self._writes.close()
        await self._renewals.close()
        await self._limit_calls.close()

    # The stream ---------------------------------------------------------------------------------

    async def StreamJobs(self, _: object, context: Context) -> None:
        authenticated = await self._authenticator.authenticate(context, "StreamJobs")
        ended: asyncio.Future[LanewayError] = asyncio.get_running_loop().create_future()
        changed_callers: list[StreamCaller] = []
        dispatcher: Dispatcher | None = None

        def end(error: LanewayError) -> None:
            if not ended.done():
                ended.set_result(error)

        def update_caller(caller: StreamCaller) -> None:
            if dispatcher is None:
                changed_callers.append(caller)
            else:
                dispatcher.update_caller(caller)

        with self._authenticator.stream_slot(authenticated, end, update_caller):
            async with asyncio.timeout(CALL_S):
                request = await self._receive(context, pb.StreamJobsRequest)
            handshake = await self._read_in_thread(read_handshake, request, self._limits)
            del request
            try:
                dispatcher = await self._dispatch.open(handshake, authenticated.caller)
            except Forbidden:
                await self._authenticator.audit_refusal(authenticated, context, "StreamJobs")
                raise
            if self._lacks_declare(dispatcher, authenticated.caller):
                await self._authenticator.audit_missing_declare(
                    authenticated.caller, context, DECLARATION_IGNORED
                )
            for caller in changed_callers:
                update_caller(caller)
            sending: asyncio.Future[Any] = asyncio.ensure_future(self._send(dispatcher, context))
            try:
                await asyncio.wait([sending, ended], return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError:
                sending.cancel()
                raise
            finally:
                await asyncio.shield(dispatcher.close())
        # A status can be sent only after the message that is being written, which is the last.
        _, unsent = await asyncio.wait([sending], timeout=UNREAD_S)
        if unsent:
            sending.cancel()
            raise asyncio.CancelledError("the worker does not read this stream")
        sending.result()
        if ended.done():
            raise ended.result()
        if dispatcher.end == "replaced":
            await context.abort(grpc.StatusCode.ABORTED, _REPLACED)
        await context.abort(grpc.StatusCode.UNAVAILABLE, _STOPPING)

    def _lacks_declare(self, dispatcher: Dispatcher, caller: StreamCaller) -> bool:
        """Whether a part of a declaration is not in force because of a missing permission."""
        return any(
            one.fields != ["arguments"] or not one.refused
            for name, one in dispatcher.ignored.items()
            if not caller.may_declare_in(self._dispatch.lane_of(name))
        )

    async def _send(self, dispatcher: Dispatcher, context: Context) -> None:
        # A lost connection needs no error: the worker reconnects and names the jobs it holds.
        with contextlib.suppress(grpc.aio.BaseError):
            ignored = [
                pb.Ignored(job_type=name, fields=one.fields, arguments_refused=one.refused)
                for name, one in dispatcher.ignored.items()
            ]
            first = pb.StreamJobsResponse(
                uncovered=dispatcher.uncovered,
                ignored=ignored,
                token_expires_in_ms=dispatcher.token_expires_in_ms,
            )
            await context.write(first)
            async for batch in dispatcher.batches():
                await context.write(messages.write_batch(batch))
                if not isinstance(batch, Beat):
                    PROCESS.assignments_sent += len(batch)

    # Calls --------------------------------------------------------------------------------------

    async def Heartbeat(self, _: object, context: Context) -> pb.HeartbeatResponse:
        async with self._begin(context, "Heartbeat", pb.HeartbeatRequest) as call:
            request = call.request
            bounded("claims", len(request.claims), messages.MAX_CLAIMS)
            memory = read_memory(request.memory_bytes)
            found = await self._find(call, request.worker_id, request.claims, "claims[{}]")
            if (stream := self._stream_of(call, request.worker_id)) is not None:
                stream.memory_bytes = memory or stream.memory_bytes
            claims = [one.claim for one in found if one is not None]
            asked_at = time.monotonic()
            answers = await self._writes.heartbeats.run(claims, min(call.left_s, BUSY_S))
        answered = list(zip(claims, answers, strict=True))
        self._dispatch.renewed([claim for claim, text in answered if text in _RENEWED], asked_at)
        self._free_fenced(claims, answers)
        left = iter(answers)
        return pb.HeartbeatResponse(
            answers=[pb.ANSWER_FENCED if one is None else ANSWERS[next(left)] for one in found]
        )

    async def ReportProgress(self, _: object, context: Context) -> pb.ReportProgressResponse:
        async with self._begin(context, "ReportProgress", pb.ReportProgressRequest) as call:
            request = call.request
            messages.check_updates(request.updates)
            claims = [one.claim for one in request.updates]
            found = await self._find(call, request.worker_id, claims, "updates[{}].claim")
            # Updates of attempts that are not the worker's are checked as strictly.
            updates = await self._read(self._updates, request, found)
            refusals = [self._refusal(one) for one in found]
            stored = [one for one, no in zip(updates, refusals, strict=True) if no is None]
            replies = await self._writes.updates.run(stored, min(call.left_s, BUSY_S))
        owned = [
            one.claim
            for one, no in zip(found, refusals, strict=True)
            if one is not None and no is None
        ]
        self._free_fenced(owned, [one.answer for one in replies])
        left = iter(replies)
        return pb.ReportProgressResponse(
            progressed=[
                no if no is not None else messages.write_progressed(one, next(left))
                for one, no in zip(updates, refusals, strict=True)
            ]
        )

    async def ReportResult(self, _: object, context: Context) -> pb.ReportResultResponse:
        async with self._begin(context, "ReportResult", pb.ReportResultRequest) as call:
            request = call.request
            messages.check_results(request.results)
            ahead = messages.read_counts(request.ahead, "ahead", 0)
            claims = [one.claim for one in request.results]
            found = await self._find(call, request.worker_id, claims, "results[{}].claim")
            if (stream := self._stream_of(call, request.worker_id)) is not None:
                stream.room.allow_ahead(ahead)
            verdicts = await self._read(self._verdicts, request, found)
            written = await self._dispatch.settle(list(verdicts.values()), call.left_s)
        if len(written) < len(found):
            # Attempts of others, and results that came twice.
            by_pair = dict(zip(verdicts, written, strict=True))
            written = [
                _FENCED if one is None else by_pair[one.claim.seq, one.claim.attempt]
                for one in found
            ]
        answers = [ANSWERS[one.answer] for one in written]
        statuses = [one.status or "" for one in written]
        is_plain = statuses.count("completed") == len(statuses)
        return pb.ReportResultResponse(answers=answers, statuses=() if is_plain else statuses)

    async def AcquireLimits(self, _: object, context: Context) -> pb.AcquireLimitsResponse:
        async with self._begin(context, "AcquireLimits", pb.AcquireLimitsRequest) as call:
            request = call.request
            wants = messages.read_counts(request.wants, "wants", 1)
            inside = messages.read_counts(request.inside, "inside", 0)
            (one,) = await self._find(call, request.worker_id, [request.claim], "claim")
            if one is None:
                return pb.AcquireLimitsResponse(answer=pb.ANSWER_FENCED)
            if not call.caller.may_declare_in(one.lane):
                await self._authenticator.audit_missing_declare(call.caller, context, LIMIT_REFUSED)
                raise InvalidInput(
                    "limit",
                    "must be a limit of the job type: to hold another, the worker's token needs"
                    " workers:declare in the job's lane",
                )
            longest_s = self._limit_holds.longest_s
            async with self._known_limits.using(wants):
                grant = await self._limit_calls.run(
                    call_limits.acquire_for_remote(one.claim, wants, inside, longest_s)
                )
        if grant.answer == "granted":
            self._limit_holds.granted()
        if grant.answer in ("full", "busy"):
            return pb.AcquireLimitsResponse(
                answer=pb.ANSWER_ACCEPTED,
                is_full=True,
                wait_ms=int((grant.wait_s or 0.0) * 1000),
            )
        return pb.AcquireLimitsResponse(answer=ANSWERS[grant.answer])

    async def ReleaseLimits(self, _: object, context: Context) -> pb.ReleaseLimitsResponse:
        async with self._begin(context, "ReleaseLimits", pb.ReleaseLimitsRequest) as call:
            request = call.request
            keeps = messages.read_counts(request.keeps, "keeps", 0)
            (one,) = await self._find(call, request.worker_id, [request.claim], "claim")
            if one is None:
                return pb.ReleaseLimitsResponse(answer=pb.ANSWER_FENCED)
            answer = await self._limit_calls.run(call_limits.release(one.claim, keeps))
        return pb.ReleaseLimitsResponse(answer=ANSWERS[answer])

    def _refusal(self, one: OwnedAttempt | None) -> pb.Progressed | None:
        """The answer to an update that is not stored: its attempt ended or reports too often.

        Each report rewrites a row, so reports per attempt are limited. Other updates of the same
        call are stored.
        """
        if one is None:
            return _FENCED_UPDATE
        if self._reports.take((one.claim.seq, one.claim.attempt)):
            return _AGAIN_UPDATE
        return None

    def _updates(
        self, request: pb.ReportProgressRequest, found: Sequence[OwnedAttempt | None]
    ) -> list[ProgressUpdate]:
        return [
            messages.read_update(
                update, _NO_CLAIM if one is None else one.claim, f"updates[{i}]", self._limits
            )
            for i, (update, one) in enumerate(zip(request.updates, found, strict=True))
        ]

    def _verdicts(
        self, request: pb.ReportResultRequest, found: Sequence[OwnedAttempt | None]
    ) -> dict[tuple[int, int], Verdict]:
        verdicts: dict[tuple[int, int], Verdict] = {}
        for result, one in zip(request.results, found, strict=True):
            if one is None:
                continue
            claim = one.claim
            pair = claim.seq, claim.attempt
            if pair not in verdicts:
                verdicts[pair] = messages.read_result(
                    result, claim, self._limits, is_analysis=is_analysis(one.job_type)
                )
        return verdicts

    def _free_fenced(self, claims: Sequence[Claim], answers: Sequence[str]) -> None:
        """Frees the room of fenced attempts: the worker now knows that they have ended."""
        self._dispatch.free_room(
            claim for claim, answer in zip(claims, answers, strict=True) if answer == "fenced"
        )


def add_to(server: grpc.aio.Server, service: WorkerCalls) -> None:
    """Adds the calls of `dispatch.proto` to a server."""
    descriptor = pb.DESCRIPTOR.services_by_name["DispatchService"]
    handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
    for method in descriptor.methods:
        make: Any = grpc.stream_unary_rpc_method_handler
        if method.server_streaming:
            make = grpc.stream_stream_rpc_method_handler
        handlers[method.name] = make(getattr(service, method.name), response_serializer=_serialize)
    handler = grpc.method_handlers_generic_handler(descriptor.full_name, handlers)
    server.add_generic_rpc_handlers((handler,))


def _serialize(message: Message | bytes) -> bytes:
    return message if isinstance(message, bytes) else message.SerializeToString()
