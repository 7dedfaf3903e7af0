"""A replica with its gRPC server, and the calls of a worker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Self
from uuid import UUID, uuid4

import grpc

from laneway.config.settings import Settings
from laneway.control.credential_cache import CredentialCache
from laneway.control.throttle import Throttle
from laneway.domain.claim import Claim
from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc._generated.dispatch_pb2_grpc import DispatchServiceStub
from laneway.rpc.server.auth import Authenticator
from laneway.rpc.server.dispatch_server import DispatchServer
from laneway.rpc.server.listener import RpcServer
from laneway.store.database import Database
from tests.api.conftest import Principal

One = Claim | pb.Claim | pb.Assignment
PATIENCE = 60.0
ACCEPTED, FENCED = pb.ANSWER_ACCEPTED, pb.ANSWER_FENCED
CANCEL_REQUESTED, AGAIN = pb.ANSWER_CANCEL_REQUESTED, pb.ANSWER_UNSPECIFIED


class Calls:
    """The calls of one worker with one token; each returns, or raises grpc.aio.AioRpcError."""

    def __init__(self, stub: Any, token: str | None, worker_id: UUID) -> None:
        self._stub = stub
        self._with = [] if token is None else [("authorization", f"Bearer {token}")]
        self.worker_id = str(worker_id)

    async def make(self, name: str, request: Any, timeout: float = PATIENCE) -> Any:
        return await getattr(self._stub, name)(request, metadata=self._with, timeout=timeout)

    async def beat(self, *claims: One) -> list[int]:
        asked = pb.HeartbeatRequest(worker_id=self.worker_id, claims=map(sent, claims))
        return list((await self.make("Heartbeat", asked)).answers)

    async def report(self, *updates: pb.Update) -> list[pb.Progressed]:
        asked = pb.ReportProgressRequest(worker_id=self.worker_id, updates=updates)
        return list((await self.make("ReportProgress", asked)).progressed)

    async def end(self, *results: pb.Result) -> list[int]:
        return list((await self.results(*results)).answers)

    async def results(self, *results: pb.Result) -> pb.ReportResultResponse:
        asked = pb.ReportResultRequest(worker_id=self.worker_id, results=results)
        answer: pb.ReportResultResponse = await self.make("ReportResult", asked)
        return answer

    async def finish(self, *claims: One, result: str = "") -> list[int]:
        return await self.end(
            *(pb.Result(claim=sent(c), finish=pb.Finish(result=result)) for c in claims)
        )

    async def acquire(
        self, claim: One, wants: dict[str, int], inside: dict[str, int] | None = None
    ) -> pb.AcquireLimitsResponse:
        asked = pb.AcquireLimitsRequest(
            worker_id=self.worker_id, claim=sent(claim), wants=wants, inside=inside or {}
        )
        answer: pb.AcquireLimitsResponse = await self.make("AcquireLimits", asked)
        return answer

    async def release(self, claim: One, keeps: dict[str, int]) -> int:
        asked = pb.ReleaseLimitsRequest(worker_id=self.worker_id, claim=sent(claim), keeps=keeps)
        return int((await self.make("ReleaseLimits", asked)).answer)

    def stream(self, job_types: Iterable[str | pb.JobType] = ("greet",), **handshake: Any) -> Any:
        """Open a stream without reading it."""
        types = [pb.JobType(name=one) if isinstance(one, str) else one for one in job_types]
        given = {"worker_id": self.worker_id, "name": "tests", "max_in_flight": 10, **handshake}
        asked = pb.StreamJobsRequest(job_types=types, **given)
        return self._stub.StreamJobs(asked, metadata=self._with)

    def stream_of(self, request: pb.StreamJobsRequest) -> Any:
        """Open a stream with exactly this request."""
        return self._stub.StreamJobs(request, metadata=self._with)

    async def connected(
        self,
        job_types: Iterable[str | pb.JobType] = ("greet",),
        *,
        uncovered: Iterable[str] = (),
        **handshake: Any,
    ) -> Any:
        """Open a stream and read its first message, which lists the `uncovered` types."""
        stream = self.stream(job_types, **handshake)
        first = await asyncio.wait_for(stream.read(), PATIENCE)
        assert first == pb.StreamJobsResponse(uncovered=uncovered)
        return stream


async def assigned(stream: Any, count: int) -> list[pb.Assignment]:
    """Read the next `count` assignments of a stream."""
    found: list[pb.Assignment] = []
    async with asyncio.timeout(PATIENCE):
        while len(found) < count:
            message = await stream.read()
            assert message is not grpc.aio.EOF
            found += message.assignments
    return found


def sent(claim: One) -> pb.Claim:
    return pb.Claim(job_id=str(claim.job_id), attempt=claim.attempt)


class RpcHarness:
    """One replica; two of them on one database act like two processes."""

    def __init__(self, dsn: str, settings: Settings, database: Database) -> None:
        self.settings = settings
        self.credential_cache = CredentialCache(database)
        self.throttle = Throttle(settings)
        self.replica = DispatchServer(dsn, settings)
        self.server = RpcServer(
            self.replica, database, settings, self.credential_cache, self.throttle
        )
        self.address = ""

    async def __aenter__(self) -> Self:
        self.address = self.server.listen("127.0.0.1", 0)
        await self.server.start()
        self.channel = grpc.aio.insecure_channel(self.address)
        self.stub = DispatchServiceStub(self.channel)  # type: ignore[no-untyped-call]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.channel.close()
        await self.server.stop(0)

    @property
    def authenticator(self) -> Authenticator:
        return self.server.authenticator

    def call(self, who: Principal | str | None, worker_id: UUID | None = None) -> Calls:
        """The calls of a worker of this principal; None: without a token."""
        token = who.token if isinstance(who, Principal) else who
        return Calls(self.stub, token, worker_id or uuid4())


def codes(results: Sequence[Any]) -> list[grpc.StatusCode | None]:
    """The status codes of refused calls; None for accepted ones."""
    return [one.code() if isinstance(one, grpc.aio.AioRpcError) else None for one in results]
