"""Callers are identified by token; their grants must be expressible as lanes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import grpc
import pytest

from laneway.config.settings import Settings
from laneway.control import credential_cache
from laneway.domain.permissions import Access, Grant
from laneway.domain.token import new_secret
from laneway.errors import DatabaseUnavailable, Forbidden
from laneway.rpc._generated import dispatch_pb2 as pb
from laneway.rpc.server.auth import address_of, caller_of
from tests.api.conftest import People
from tests.rpc.rpc_harness import PATIENCE, RpcHarness, assigned
from tests.support.job_factory import JobFactory
from tests.support.worker_harness import wait_until


@pytest.fixture
def bounds() -> dict[str, int]:
    """Settings of the authenticator; parametrized where they matter."""
    return {}


@pytest.fixture
def settings(settings: Settings, bounds: dict[str, int]) -> Settings:
    return settings.model_copy(update=bounds)


CLAIM = frozenset({"workers:claim"})


def access(*grants: Grant, token_lanes: frozenset[str] | None = None) -> Access:
    return Access(uuid4(), "ann", "service", grants, None, token_lanes)


def test_lanes_of_all_grants_are_reached_together() -> None:
    here, there = frozenset({"a"}), frozenset({"b"})
    assert caller_of(access(Grant(CLAIM, "all"))).lanes is None
    both = access(Grant(CLAIM, "all", None, here), Grant(CLAIM, "all", None, there))
    assert caller_of(both).lanes == here | there
    assert caller_of(access(Grant(CLAIM, "all"), token_lanes=here)).lanes == here
    more = access(Grant(CLAIM, "all", None, here), Grant(CLAIM, "all"))
    assert caller_of(more).lanes is None


def test_token_for_some_job_types_claims_those() -> None:
    bound = replace(access(Grant(CLAIM, "all")), token_job_types=frozenset({"greet"}))
    assert caller_of(bound).job_types == frozenset({"greet"})
    assert caller_of(bound).lanes is None


@pytest.mark.parametrize(
    "grants, message",
    [
        ((), "needs the permission workers:claim"),
        ((Grant(frozenset({"jobs:read"}), "all"),), "needs the permission workers:claim"),
        ((Grant(CLAIM, "own"),), "claimed by lane"),
        ((Grant(CLAIM, "workspace", "acme"),), "claimed by lane"),
    ],
)
def test_grants_not_expressible_as_lanes_are_refused(
    grants: tuple[Grant, ...], message: str
) -> None:
    with pytest.raises(Forbidden, match=message):
        caller_of(access(*grants))


@pytest.mark.parametrize(
    "peer, address",
    [
        ("ipv4:192.0.2.1:4711", "192.0.2.1"),
        ("ipv6:%5B2001:db8::1%5D:4711", "2001:db8::1"),
        ("unix:/tmp/x", None),
        ("", None),
    ],
)
def test_address_of_a_peer_is_read(peer: str, address: str | None) -> None:
    class Context:
        def peer(self) -> str:
            return peer

    assert address_of(Context()) == address  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "metadata",
    [
        [],
        [("authorization", "")],
        [("authorization", "Bearer")],
        [("authorization", "Basic YTpi")],
        [("authorization", "Bearer nonsense")],
        [("authorization", f"Bearer {new_secret().text}")],
        [("authorization", f"Bearer {new_secret('session').text}")],
    ],
)
async def test_without_a_token_that_is_known_nothing_is_done(
    rpc: RpcHarness, metadata: list[tuple[str, str]]
) -> None:
    # Also what breaks a rule is not read before.
    asked = pb.HeartbeatRequest(worker_id="nobody")
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await rpc.stub.Heartbeat(asked, metadata=metadata, timeout=PATIENCE)
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    stream = rpc.stub.StreamJobs(pb.StreamJobsRequest(), metadata=metadata)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await stream.read()
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_refusal_is_audited(
    rpc: RpcHarness, people: People, audit_entries: Callable[[], list[tuple[Any, ...]]]
) -> None:
    vic = people.new("vic", "viewer")
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await rpc.call(vic).beat()
    assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
    assert refused.value.details() == "needs the permission workers:claim"
    assert audit_entries() == [("vic", "grpc", "Heartbeat", "refused")]


@pytest.mark.parametrize("bounds", [{"failed_logins_per_minute": 2}])
async def test_guessing_of_tokens_is_slowed_and_others_are_not(
    rpc: RpcHarness, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine the limit would give another try meanwhile.
    monkeypatch.setattr("laneway.control.throttle.time", SimpleNamespace(monotonic=lambda: 0.0))
    ann = people.new("ann", "remote_worker")
    assert await rpc.call(ann).beat() == []
    codes = []
    for _ in range(4):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await rpc.call(new_secret().text).beat()
        codes.append(refused.value.code())
    guessed, slowed = grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.RESOURCE_EXHAUSTED
    assert codes == [guessed, guessed, slowed, slowed]
    assert await rpc.call(ann).beat() == []
    assert await rpc.call(people.new("bo", "remote_worker")).beat() == [], "valid, seen first"


async def test_revoked_token_loses_its_calls_and_its_stream(
    rpc: RpcHarness, people: People, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert credential_cache.FRESH_S < 5
    monkeypatch.setattr(credential_cache, "FRESH_S", 0.0)
    calls = rpc.call(people.new("ann", "remote_worker"))
    factory.submit()
    stream = await calls.connected(max_in_flight=2)
    (one,) = await assigned(stream, 1)
    factory.conn.execute("update laneway.tokens set revoked_at = now(), revoked_by = 'tests'")
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await calls.beat(one)
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    await rpc.authenticator.review()
    with pytest.raises(grpc.aio.AioRpcError) as ended:
        await asyncio.wait_for(stream.read(), PATIENCE)
    assert ended.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert rpc.authenticator.count == 0


async def test_token_that_reaches_other_lanes_now_is_sent_jobs_of_those_only(
    rpc: RpcHarness, people: People, factory: JobFactory
) -> None:
    ann = people.new("ann", "remote_worker")
    calls = rpc.call(ann)
    stream = await calls.connected(["ingestion", "projection"])
    factory.conn.execute("update laneway.tokens set lanes = '{maintenance}'")
    await rpc.authenticator.review()
    factory.submit("ingestion")
    factory.submit("projection")
    rpc.replica.poller.wake()
    (one,) = await assigned(stream, 1)
    assert one.lane == "maintenance"


async def test_older_look_at_tokens_does_not_undo_a_newer_one(
    rpc: RpcHarness, people: People, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = rpc.call(people.new("ann", "remote_worker"))
    stream = await calls.connected(["ingestion", "projection"])
    look, has_looked, go_on = rpc.credential_cache.review, asyncio.Event(), asyncio.Event()

    async def slow_at_first(digests: Collection[bytes]) -> dict[bytes, Access]:
        task = asyncio.current_task()
        if task is None or task.get_name() not in ("older", "newer"):
            # The server's own look would mend what they did.
            raise DatabaseUnavailable("not now")
        found = await look(digests)
        if not has_looked.is_set():
            has_looked.set()
            await go_on.wait()
        return found

    monkeypatch.setattr(rpc.credential_cache, "review", slow_at_first)
    factory.conn.execute("update laneway.tokens set lanes = '{maintenance}'")
    older = asyncio.create_task(rpc.authenticator.review(), name="older")
    await asyncio.wait_for(has_looked.wait(), PATIENCE)
    factory.conn.execute("update laneway.tokens set lanes = null")
    newer = asyncio.create_task(rpc.authenticator.review(), name="newer")
    # It waits for the older one. If it did not, it would be over by then.
    await asyncio.wait([newer], timeout=1.0)
    go_on.set()
    await asyncio.wait_for(asyncio.gather(older, newer), PATIENCE)
    factory.submit("ingestion")
    rpc.replica.poller.wake()
    (one,) = await assigned(stream, 1)
    assert one.lane == "interactive"


@pytest.mark.parametrize(
    "bounds, most",
    [
        ({"max_remote_workers": 2}, "2 workers"),
        ({"max_remote_workers_per_principal": 2}, "ann has"),
    ],
)
async def test_connected_workers_are_bounded_and_leaving_frees_slot(
    rpc: RpcHarness, people: People, bounds: dict[str, int], most: str
) -> None:
    door, ann = rpc.authenticator, people.new("ann", "remote_worker")
    first = await rpc.call(ann).connected()
    second = await rpc.call(ann).connected()
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await rpc.call(ann).connected()
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert most in str(refused.value.details())
    if "max_remote_workers_per_principal" in bounds:
        await rpc.call(people.new("bob", "remote_worker")).connected()
    connected = door.count
    first.cancel()
    await wait_until(lambda: door.count == connected - 1)
    await rpc.call(ann).connected()
    assert not second.done()


@pytest.fixture
def rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laneway.rpc.server.auth.HANDSHAKES_PER_S", 0.001)


@pytest.mark.usefixtures("rarely")
@pytest.mark.parametrize("bounds", [{"max_remote_workers_per_principal": 1}])
async def test_frequent_connects_are_throttled(rpc: RpcHarness, people: People) -> None:
    ann, bob = people.new("ann", "remote_worker"), people.new("bob", "remote_worker")
    for _ in range(2):
        stream = await rpc.call(ann).connected()
        stream.cancel()
        await wait_until(lambda: rpc.authenticator.count == 0)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await rpc.call(ann).connected()
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "too often" in str(refused.value.details())
    await rpc.call(bob).connected()


async def test_stream_says_that_its_token_expires_soon(rpc: RpcHarness, people: People) -> None:
    ann = people.new("ann", "remote_worker")
    stream = await rpc.call(ann).connected()
    await rpc.authenticator.review()
    people.expire(ann.token, days=3.5)
    await rpc.authenticator.review()
    message = pb.StreamJobsResponse(beat=True, token_expires_in_ms=3 * 86_400_000)
    assert await asyncio.wait_for(stream.read(), PATIENCE) == message
    soon = replace(ann, token=people.token(ann.id))
    people.expire(soon.token, days=1.5)
    first = await asyncio.wait_for(rpc.call(soon).stream().read(), PATIENCE)
    assert first == pb.StreamJobsResponse(token_expires_in_ms=86_400_000)
