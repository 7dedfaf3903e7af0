"""A separate process renews the leases of a remote worker, whatever handlers do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import grpc
import pytest

from laneway.errors import DatabaseUnavailable
from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc.worker.endpoint import Endpoint
from laneway.rpc.worker.heartbeat_child import Renewals
from laneway.store.leases import WriteResult
from tests.rpc.processes import RemoteWorkerCommand
from tests.rpc.scripted_server import TOKEN, ScriptedServer, assignment
from tests.support.worker_harness import wait_until

WORKER = str(uuid4())


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer() as server:
        yield server


async def test_handler_that_holds_the_gil_for_three_leases_keeps_its_lease(
    server: ScriptedServer,
) -> None:
    with RemoteWorkerCommand(server.address) as worker:
        await wait_until(lambda: server.handshakes)
        one = assignment("hold_gil", {"seconds": 3.0}, lease_ms=1000, lease_left_ms=1000)
        server.send(one)
        await wait_until(lambda: one.job_id in server.results)
        assert json.loads(server.results[one.job_id].finish.result) == "still mine"
        beats = [b for b in server.of(pb.HeartbeatRequest) if b.claims]
        assert len(beats) >= 3
        assert {c.job_id for beat in beats for c in beat.claims} == {one.job_id}
        assert all(beat.memory_bytes > 1_000_000 for beat in beats)
        # What only processes of ours may read is not on the command line.
        assert TOKEN not in " ".join(" ".join(p.cmdline()) for p in worker.tree())


async def test_nothing_is_renewed_for_a_worker_that_was_killed(server: ScriptedServer) -> None:
    with RemoteWorkerCommand(server.address) as worker:
        await wait_until(lambda: server.handshakes)
        one = assignment("wait", lease_ms=600, lease_left_ms=600)
        server.send(one)
        await wait_until(lambda: len(server.of(pb.HeartbeatRequest)) > 3)
        worker.kill()
        await wait_until(worker.all_gone)
        assert one.job_id not in server.results


async def test_unrenewed_lease_is_lost_by_workers_clock(
    server: ScriptedServer,
) -> None:
    with RemoteWorkerCommand(server.address, LOST_S="1"):
        await wait_until(lambda: server.handshakes)
        server.refusals["Heartbeat"] = grpc.StatusCode.UNAVAILABLE, "the database is away"
        lost = assignment("wait", lease_ms=600, lease_left_ms=600)
        server.send(lost)
        await wait_until(
            lambda: [u for r in server.of(pb.ReportProgressRequest) for u in r.updates]
        )
        # While it is held it is named when the worker connects again; afterwards it is not.
        await wait_until(lambda: not _held_after_a_new_stream(server))
        assert lost.job_id not in server.results


def _held_after_a_new_stream(server: ScriptedServer) -> bool:
    if server.streams:
        server.end_stream()
        server.streams.clear()
    return len(server.handshakes) < 3 or bool(server.handshakes[-1].holds)


# -- the renewals by themselves -------------------------------------------------------------------


def _asked(link: Endpoint) -> list[WriteResult]:
    pairs = [(1, 3), (2, 1), (3, 1)]
    job_ids = [UUID(int=n).bytes for n, _ in pairs]
    return Renewals(link, WORKER).renew(pairs, job_ids, 5.0)


async def test_claims_have_job_ids_and_odd_ones_get_answers(
    server: ScriptedServer,
) -> None:
    odd = {2: pb.ANSWER_FENCED, 3: pb.ANSWER_CANCEL_REQUESTED}
    server.answer = lambda claim: odd.get(UUID(claim.job_id).int, pb.ANSWER_ACCEPTED)
    answers = await asyncio.to_thread(_asked, server.link)
    assert answers == [WriteResult(2, 1, "fenced"), WriteResult(3, 1, "cancel_requested")]
    (request,) = server.of(pb.HeartbeatRequest)
    assert request.worker_id == WORKER
    assert [(UUID(c.job_id).int, c.attempt) for c in request.claims] == [(1, 3), (2, 1), (3, 1)]


async def test_another_replica_renews_when_one_does_not_answer(server: ScriptedServer) -> None:
    async with ScriptedServer() as other:
        gone = other.address
    renewals = Renewals(Endpoint.to(f"{gone},{server.address}", TOKEN), WORKER)

    def renew() -> list[WriteResult]:
        return renewals.renew([(1, 1)], [UUID(int=1).bytes], 1.0)

    with pytest.raises(DatabaseUnavailable, match=gone):
        await asyncio.to_thread(renew)
    assert await asyncio.to_thread(renew) == []
    assert server.of(pb.HeartbeatRequest)
