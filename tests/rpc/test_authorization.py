"""No token sees or touches another's job, or can tell it from one that does not exist."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import grpc
import psycopg
import pytest

from laneway.config.settings import Settings
from laneway.rpc._generated import dispatch_pb2 as pb
from tests.api.conftest import People, Principal
from tests.rpc.rpc_harness import ACCEPTED, FENCED, Calls, RpcHarness, assigned, sent
from tests.support.job_factory import JobFactory

# Each says something of one claim, and would change something.
CALLS: dict[str, Callable[[str, pb.Claim], Any]] = {
    "Heartbeat": lambda worker, claim: pb.HeartbeatRequest(worker_id=worker, claims=[claim]),
    "ReportProgress": lambda worker, claim: pb.ReportProgressRequest(
        worker_id=worker,
        updates=[
            pb.Update(
                claim=claim,
                done=1,
                checkpoint='"stolen"',
                steps=[pb.Step(name="s", result="1")],
                lines=[pb.LogLine(number=1, level="info", message="x")],
            )
        ],
    ),
    "ReportResult": lambda worker, claim: pb.ReportResultRequest(
        worker_id=worker, results=[pb.Result(claim=claim, finish=pb.Finish(result="1"))]
    ),
    "AcquireLimits": lambda worker, claim: pb.AcquireLimitsRequest(
        worker_id=worker, claim=claim, wants={"openai": 1}
    ),
    "ReleaseLimits": lambda worker, claim: pb.ReleaseLimitsRequest(
        worker_id=worker, claim=claim, keeps={"openai": 0}
    ),
    "ReadWaits": lambda worker, claim: pb.ReadWaitsRequest(worker_id=worker, claim=claim),
    "BeginWait": lambda worker, claim: pb.BeginWaitRequest(
        worker_id=worker, claim=claim, name="night", kind="sleep", duration_ms=5
    ),
    "SubmitSubJobs": lambda worker, claim: pb.SubmitSubJobsRequest(
        worker_id=worker,
        claim=claim,
        name="parts",
        total=1,
        jobs=[pb.SubJob(job_type="ingestion", payload='{"path": "b"}')],
    ),
    "ReadResults": lambda worker, claim: pb.ReadResultsRequest(worker_id=worker, claim=claim),
}
# What of a call's answer says what became of the claim.
ANSWERS: dict[str, Callable[[Any], int]] = {
    "Heartbeat": lambda response: response.answers[0],
    "ReportProgress": lambda response: response.progressed[0].answer,
    "ReportResult": lambda response: response.answers[0],
    "AcquireLimits": lambda response: response.answer,
    "ReleaseLimits": lambda response: response.answer,
    "ReadWaits": lambda response: response.answer,
    "BeginWait": lambda response: response.answer,
    "SubmitSubJobs": lambda response: response.answer,
    "ReadResults": lambda response: response.answer,
}
REFUSED = {
    "unauthenticated": grpc.StatusCode.UNAUTHENTICATED,
    "forbidden": grpc.StatusCode.PERMISSION_DENIED,
}
TABLES = (
    *("lease", "progress", "logs", "steps", "outcome", "attempts", "ready", "limit_usage"),
    *("jobs", "handler_waits"),
)


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """So many wrong tokens come from nowhere else."""
    return settings.model_copy(update={"failed_logins_per_minute": 0})


class Theft:
    """Ann's worker runs a job in the lane interactive; other callers have separate tokens."""

    def __init__(self, rpc: RpcHarness, people: People, factory: JobFactory) -> None:
        self.rpc, self.people, self.factory = rpc, people, factory
        people.role("trusted", "workers:claim", "workers:declare")
        self.ann = people.new("ann", "trusted")
        self.bob = people.new("bob", "trusted")
        self.mine = rpc.call(self.ann)
        self.tokens = {
            "whole": self.ann.token,
            "other lane": people.token(self.ann.id, lanes=["maintenance"]),
            "other type": people.token(self.ann.id, job_types=["projection", "greet"]),
            "other principal": self.bob.token,
            "other lane of another": people.new("eve", "remote_worker", lanes=["system"]).token,
            "no permission": people.token(self.ann.id, permissions=["jobs:read"]),
            "expired": self._spoiled("expires_at = now() - interval '1 s'"),
            "revoked": self._spoiled("revoked_at = now(), revoked_by = 'tests'"),
        }

    def _spoiled(self, change: str) -> str:
        token = self.people.token(self.ann.id)
        newest = "(select id from laneway.tokens order by created_at desc, id desc limit 1)"
        self.factory.conn.execute(f"update laneway.tokens set {change} where id = {newest}")
        return token

    async def begin(self) -> pb.Claim:
        job_id = self.factory.submit("ingestion", payload='{"path": "a"}')
        stream = await self.mine.connected(["ingestion"])
        (one,) = await assigned(stream, 1)
        assert UUID(one.job_id) == job_id
        return sent(one)

    def calls(self, token: str, worker_id: str | None = None) -> Calls:
        return self.rpc.call(token, UUID(worker_id or self.mine.worker_id))

    def all_rows(self) -> list[list[tuple[Any, ...]]]:
        return [
            self.factory.conn.execute(f"select t.* from laneway.{table} t order by 1, 2").fetchall()
            for table in TABLES
        ]


@pytest.fixture
def theft(rpc: RpcHarness, people: People, factory: JobFactory) -> Theft:
    return Theft(rpc, people, factory)


async def heard(calls: Calls, name: str, claim: pb.Claim) -> tuple[Any, ...]:
    """All that a caller hears."""
    try:
        response = await calls.make(name, CALLS[name](calls.worker_id, claim))
    except grpc.aio.AioRpcError as error:
        return error.code(), error.details()
    return None, response.SerializeToString(deterministic=True), ANSWERS[name](response)


async def test_job_of_another_worker_is_neither_revealed_nor_changed(theft: Theft) -> None:
    """Each token × each call × the job, with its worker's id and with another."""
    claim = await theft.begin()
    unknown = pb.Claim(job_id=str(uuid4()), attempt=1)
    later = pb.Claim(job_id=claim.job_id, attempt=2)
    before = theft.all_rows()
    for kind, token in theft.tokens.items():
        for worker_id in (theft.mine.worker_id, str(uuid4())):
            if kind == "whole" and worker_id == theft.mine.worker_id:
                continue
            calls = theft.calls(token, worker_id)
            for name in CALLS:
                replies = [await heard(calls, name, one) for one in (claim, unknown, later)]
                assert replies[0] == replies[1] == replies[2], f"{kind} can tell by {name}"
                code = {"no permission": "forbidden", "expired": "unauthenticated"}.get(kind)
                code = "unauthenticated" if kind == "revoked" else code
                if code is None:
                    assert replies[0][0] is None
                    assert replies[0][2] == FENCED, f"{kind} by {name}"
                else:
                    assert replies[0][0] is REFUSED[code], f"{kind} by {name}"
    assert theft.all_rows() == before, "nothing was changed by any of them"


@pytest.mark.parametrize("name", CALLS)
async def test_whose_job_it_is_may_make_every_call(theft: Theft, name: str) -> None:
    claim = await theft.begin()
    for reply in (await heard(theft.mine, name, claim), await heard(theft.mine, name, claim)):
        assert reply[2] == ACCEPTED


async def test_callers_cannot_act_for_workers_of_others(theft: Theft) -> None:
    await theft.begin()
    before = theft.factory.conn.execute("select * from laneway.workers order by id").fetchall()
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await theft.calls(theft.bob.token).connected(["ingestion"])
    assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
    after = theft.factory.conn.execute("select * from laneway.workers order by id").fetchall()
    assert after == before


@pytest.mark.parametrize(
    "kind, code",
    [
        ("other lane", grpc.StatusCode.PERMISSION_DENIED),
        ("other type", grpc.StatusCode.PERMISSION_DENIED),
        ("no permission", grpc.StatusCode.PERMISSION_DENIED),
        ("expired", grpc.StatusCode.UNAUTHENTICATED),
        ("revoked", grpc.StatusCode.UNAUTHENTICATED),
    ],
)
async def test_stream_without_claimable_types_is_refused(
    theft: Theft, kind: str, code: grpc.StatusCode
) -> None:
    theft.factory.submit("ingestion", payload='{"path": "a"}')
    calls = theft.calls(theft.tokens[kind], str(uuid4()))
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await calls.connected(["ingestion"])
    assert refused.value.code() is code
    assert theft.factory.conn.execute("select count(*) from laneway.lease").fetchone() == (0,)
    kept = theft.factory.conn.execute(
        "select count(*) from laneway.audit"
        " where (door, action, outcome) = ('grpc', 'StreamJobs', 'refused')"
    )
    assert kept.fetchone() == (int(code is grpc.StatusCode.PERMISSION_DENIED),)


async def test_worker_gets_only_jobs_of_its_lanes(
    rpc: RpcHarness, people: People, factory: JobFactory
) -> None:
    ann = people.new("ann", "remote_worker", lanes=["interactive"])
    for job_type in ("projection", "greet", "ingestion"):
        factory.submit(job_type)
    stream = await rpc.call(ann).connected(
        ["ingestion", "projection", "greet"], uncovered=["projection", "greet"]
    )
    (one,) = await assigned(stream, 1)
    assert (one.job_type, one.lane) == ("ingestion", "interactive")
    factory.submit("ingestion")
    rpc.replica.poller.wake()
    (one,) = await assigned(stream, 1)
    assert one.lane == "interactive"
    held = factory.conn.execute("select distinct lane from laneway.lease").fetchall()
    assert held == [("interactive",)]


async def test_worker_is_sent_only_the_types_of_its_token(
    rpc: RpcHarness, people: People, factory: JobFactory
) -> None:
    ann = people.new("ann", "remote_worker")
    calls = rpc.call(people.token(ann.id, job_types=["ingestion"]))
    for job_type in ("polarity", "greet", "ingestion"):
        factory.submit(job_type)
    stream = await calls.connected(
        ["polarity", "ingestion", "greet"], uncovered=["polarity", "greet"]
    )
    (one,) = await assigned(stream, 1)
    assert one.job_type == "ingestion"
    assert await calls.finish(one) == [ACCEPTED]
    factory.submit("ingestion")
    rpc.replica.poller.wake()
    await assigned(stream, 1)
    held = factory.conn.execute("select distinct job_type from laneway.lease").fetchall()
    assert held == [("ingestion",)]


def test_table_of_calls_is_complete() -> None:
    service = pb.DESCRIPTOR.services_by_name["DispatchService"]
    assert {one.name for one in service.methods} == {*CALLS, "StreamJobs"}


async def test_another_principal_with_the_same_lanes_is_sent_other_jobs(
    theft: Theft, conn: psycopg.Connection[Any]
) -> None:
    claim = await theft.begin()
    theft.factory.submit("ingestion")
    bob: Principal = theft.bob
    stream = await theft.rpc.call(bob).connected(["ingestion"])
    (one,) = await assigned(stream, 1)
    assert one.job_id != claim.job_id
