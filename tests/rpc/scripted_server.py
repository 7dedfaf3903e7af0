"""A scripted gRPC server that records its requests."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

import grpc
import grpc.aio

from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc._generated import dispatch_pb2_grpc as pb_grpc
from laneway.rpc.worker.endpoint import Endpoint

TOKEN = "lw_" + "a" * 43
ACCEPTED = pb.ANSWER_ACCEPTED


def assignment(job_type: str, payload: object = None, **fields: Any) -> pb.Assignment:
    """An assignment with a new job id."""
    given: dict[str, Any] = {"job_id": str(uuid4()), "attempt": 1, "lane": "default"}
    given.update(lease_ms=30_000, lease_left_ms=30_000, payload=json.dumps(payload or {}))
    return pb.Assignment(job_type=job_type, **{**given, **fields})


class ScriptedServer(pb_grpc.DispatchServiceServicer):
    """One server on loopback; `port` stays the same when it is stopped and started again."""

    def __init__(self, tls: tuple[Path, Path] | None = None) -> None:
        self.port = 0
        self._tls = tls
        self.handshakes: list[pb.StreamJobsRequest] = []
        self.streams: list[asyncio.Queue[pb.StreamJobsResponse | None]] = []
        self.asked: list[Any] = []
        self.tokens: set[str] = set()
        # Call name → the status and details with which the call is refused.
        self.refusals: dict[str, tuple[grpc.StatusCode, str]] = {}
        self.refused: Counter[str] = Counter()
        self.answer: Callable[[pb.Claim], pb.Answer] = lambda claim: ACCEPTED
        self.statuses: list[str] = []
        self.limits = pb.AcquireLimitsResponse(answer=ACCEPTED)
        self.kept: dict[str, str] = {}
        self.uncovered: list[str] = []
        self.ignored: list[pb.Ignored] = []

    # -- its life --------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    async def start(self) -> None:
        self._server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
        pb_grpc.add_DispatchServiceServicer_to_server(self, self._server)  # type: ignore[no-untyped-call]
        if self._tls is None:
            self.port = self._server.add_insecure_port(f"127.0.0.1:{self.port}")
        else:
            cert, key = (file.read_bytes() for file in self._tls)
            credentials = grpc.ssl_server_credentials([(key, cert)])
            self.port = self._server.add_secure_port(f"127.0.0.1:{self.port}", credentials)
        await self._server.start()

    async def stop(self) -> None:
        """Stop at once; open streams break."""
        self.streams.clear()
        await self._server.stop(None)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def link(self) -> Endpoint:
        return Endpoint.to(self.address, TOKEN)

    # -- for tests -------------------------------------------------------------------------------

    def send(self, *assignments: pb.Assignment, beat: bool = False) -> None:
        """Send assignments through the newest stream."""
        self.streams[-1].put_nowait(pb.StreamJobsResponse(assignments=assignments, beat=beat))

    def send_expiry(self, left_s: float) -> None:
        """Say through the newest stream that the token expires soon."""
        left_ms = int(left_s * 1000)
        self.streams[-1].put_nowait(pb.StreamJobsResponse(beat=True, token_expires_in_ms=left_ms))

    def end_stream(self) -> None:
        self.streams[-1].put_nowait(None)

    def of(self, kind: type[Any]) -> list[Any]:
        """The requests of a kind, in order of arrival."""
        return [one for one in self.asked if isinstance(one, kind)]

    @property
    def results(self) -> dict[str, pb.Result]:
        """The newest result of each job."""
        found = self.of(pb.ReportResultRequest)
        return {one.claim.job_id: one for request in found for one in request.results}

    # -- the service -----------------------------------------------------------------------------

    async def StreamJobs(
        self, request: pb.StreamJobsRequest, context: Any
    ) -> AsyncIterator[pb.StreamJobsResponse]:
        await self._note(request, context, "StreamJobs")
        self.handshakes.append(request)
        messages: asyncio.Queue[pb.StreamJobsResponse | None] = asyncio.Queue()
        self.streams.append(messages)
        yield pb.StreamJobsResponse(uncovered=self.uncovered, ignored=self.ignored)
        while (message := await messages.get()) is not None:
            yield message

    async def Heartbeat(self, request: pb.HeartbeatRequest, context: Any) -> pb.HeartbeatResponse:
        await self._note(request, context, "Heartbeat")
        return pb.HeartbeatResponse(answers=[self.answer(one) for one in request.claims])

    async def ReportResult(
        self, request: pb.ReportResultRequest, context: Any
    ) -> pb.ReportResultResponse:
        await self._note(request, context, "ReportResult")
        answers = [self.answer(one.claim) for one in request.results]
        return pb.ReportResultResponse(answers=answers, statuses=self.statuses)

    async def ReportProgress(
        self, request: pb.ReportProgressRequest, context: Any
    ) -> pb.ReportProgressResponse:
        await self._note(request, context, "ReportProgress")
        return pb.ReportProgressResponse(progressed=[self._progressed(u) for u in request.updates])

    def _progressed(self, update: pb.Update) -> pb.Progressed:
        steps = [
            pb.Step(name=one.name, result=self.kept.setdefault(one.name, one.result))
            for one in update.steps
        ]
        return pb.Progressed(answer=self.answer(update.claim), steps=steps)

    async def AcquireLimits(
        self, request: pb.AcquireLimitsRequest, context: Any
    ) -> pb.AcquireLimitsResponse:
        await self._note(request, context, "AcquireLimits")
        return self.limits

    async def ReleaseLimits(
        self, request: pb.ReleaseLimitsRequest, context: Any
    ) -> pb.ReleaseLimitsResponse:
        await self._note(request, context, "ReleaseLimits")
        return pb.ReleaseLimitsResponse(answer=self.answer(request.claim))

    async def _note(self, request: Any, context: Any, method: str) -> None:
        self.tokens.update(v for k, v in context.invocation_metadata() if k == "authorization")
        if method in self.refusals:
            self.refused[method] += 1
            await context.abort(*self.refusals[method])
        self.asked.append(request)
