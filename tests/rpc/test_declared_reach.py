"""A claim token takes jobs of its lanes only, and changes no policy that was published."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import grpc
import psycopg
import pytest

from laneway.rpc._generated import dispatch_pb2 as pb
from tests.api.conftest import People, Principal
from tests.rpc.rpc_harness import ACCEPTED, FENCED, PATIENCE, Calls, RpcHarness, assigned
from tests.support.job_factory import JobFactory

DENIED = grpc.StatusCode.PERMISSION_DENIED


def declared(name: str, **declaration: Any) -> pb.JobType:
    return pb.JobType(name=name, declaration=json.dumps(declaration))


def policy(conn: psycopg.Connection[Any], name: str) -> dict[str, Any]:
    row = conn.execute(
        "select to_jsonb(t) - 'published_at' from laneway.job_types t where name = %s", [name]
    ).fetchone()
    assert row is not None
    found: dict[str, Any] = row[0]
    return found


async def ignored(calls: Calls, *types: pb.JobType) -> dict[str, list[str]]:
    stream = calls.stream(types)
    first = await stream.read()
    stream.cancel()
    return {one.job_type: list(one.fields) for one in first.ignored}


@pytest.fixture
def eve(people: People, conn: psycopg.Connection[Any]) -> Principal:
    """May claim in the lane evil."""
    conn.execute("insert into laneway.worker_lanes (name, updated_by) values ('evil', 'tests')")
    return people.new("eve", "remote_worker", lanes=["evil"])


async def test_unpublished_type_stays_in_default_lane(
    rpc: RpcHarness, people: People, factory: JobFactory, eve: Principal
) -> None:
    job_id = factory.submit("payments")
    for token in (eve.token, people.token(eve.id, job_types=["payments"])):
        calls = rpc.call(token)
        for lane in ({"lane": "evil"}, {}, {"lane": "default"}):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await calls.connected([declared("payments", **lane)])
            assert refused.value.code() is DENIED
        claim = pb.Claim(job_id=str(job_id), attempt=1)
        assert await calls.finish(claim, result='"forged"') == [FENCED]
    assert factory.conn.execute("select count(*) from laneway.lease").fetchone() == (0,)
    placed = "select count(*) from laneway.worker_lanes where 'payments' = any (job_types)"
    assert factory.conn.execute(placed).fetchone() == (0,)


async def test_type_of_its_lane_brings_none_of_default(
    rpc: RpcHarness, factory: JobFactory, eve: Principal
) -> None:
    factory.conn.execute("update laneway.worker_lanes set job_types = '{hers}' where name = 'evil'")
    factory.submit("payments")
    factory.submit("hers")
    types = [declared("hers"), declared("payments", lane="evil")]
    stream = await rpc.call(eve).connected(types, uncovered=["payments"])
    (one,) = await assigned(stream, 1)
    assert one.job_type == "hers"
    held = factory.conn.execute("select distinct job_type from laneway.lease").fetchall()
    assert held == [("hers",)]


async def test_jobs_of_unpublished_types_go_to_tokens_that_cover_default(
    rpc: RpcHarness, people: People, factory: JobFactory, eve: Principal
) -> None:
    factory.submit("payments")
    ann = people.new("ann", "remote_worker", lanes=["default", "evil"])
    calls = rpc.call(ann)
    stream = await calls.connected([declared("payments", lane="evil")])
    (one,) = await assigned(stream, 1)
    assert await calls.finish(one) == [ACCEPTED]


@pytest.mark.parametrize("lanes", [None, ["default"]])
async def test_claim_token_changes_no_policy_that_was_published(
    rpc: RpcHarness, people: People, factory: JobFactory, lanes: list[str] | None
) -> None:
    factory.publish("ours")
    before = policy(factory.conn, "ours")
    ann = people.new("ann", "remote_worker", lanes=lanes)
    settings = {
        "arguments": {"type": "object", "required": ["x"]},
        "priority": 99,
        "max_retries": 0,
        "max_age_s": 1.0,
        "retention": {"completed_s": 1.0},
        "limits": ["theirs"],
        "lane": "system",
    }
    found = await ignored(rpc.call(ann), declared("ours", **settings))
    assert policy(factory.conn, "ours") == before
    assert {
        *("arguments", "priority", "max_retries", "max_age_s", "keep_completed_s"),
        *("limits", "lane"),
    } <= set(found["ours"])
    limits = "select count(*) from laneway.limits where name = 'theirs'"
    assert factory.conn.execute(limits).fetchone() == (0,)


async def test_first_publication_of_a_claim_token_counts_once(
    rpc: RpcHarness, people: People, factory: JobFactory
) -> None:
    ann, bob = (people.new(name, "remote_worker") for name in ("ann", "bob"))
    mine = declared("new", max_retries=5, limits=["openai", "theirs"], lane="nowhere")
    assert await ignored(rpc.call(ann), mine) == {"new": ["lane", "limits"]}
    assert policy(factory.conn, "new")["max_retries"] == 5
    assert policy(factory.conn, "new")["limits"] == []
    made = "select (select count(*) from laneway.limits where name = 'theirs')"
    made += " + (select count(*) from laneway.worker_lanes where name = 'nowhere')"
    assert factory.conn.execute(made).fetchone() == (0,)
    found = await ignored(rpc.call(bob), declared("new", max_retries=1))
    assert found == {"new": ["max_retries"]}
    assert policy(factory.conn, "new")["max_retries"] == 5


async def test_operators_settings_of_unpublished_type_stay(
    rpc: RpcHarness, people: People, factory: JobFactory
) -> None:
    ann = people.new("ann", "remote_worker", lanes=["interactive"])
    before = policy(factory.conn, "ingestion")["priority"]
    assert before == 10
    found = await ignored(rpc.call(ann), declared("ingestion", priority=30_000))
    assert found == {"ingestion": ["priority"]}
    assert policy(factory.conn, "ingestion")["priority"] == before


async def test_token_that_may_declare_changes_policies_of_its_lanes_only(
    rpc: RpcHarness, people: People, factory: JobFactory
) -> None:
    factory.publish("ours")
    factory.publish("ingestion")
    people.role("declarer", "workers:claim", "workers:declare")
    ann = people.new("ann", "declarer", lanes=["default"])
    people.grant(ann.id, "remote_worker", lanes=["interactive"])
    settings = {"max_retries": 1, "limits": ["new-limit"]}
    found = await ignored(
        rpc.call(ann), declared("ours", **settings), declared("ingestion", **settings)
    )
    assert found == {"ingestion": ["limits", "max_retries"]}
    assert policy(factory.conn, "ours")["max_retries"] == 1
    assert policy(factory.conn, "ingestion")["max_retries"] == 3
    limits = "select count(*) from laneway.limits where name = 'new-limit'"
    assert factory.conn.execute(limits).fetchone() == (1,)


async def test_timeout_of_an_ignored_declaration_is_not_sent(
    rpc: RpcHarness, people: People, factory: JobFactory
) -> None:
    factory.publish("ours")
    factory.conn.execute("update laneway.job_types set timeout_s = 10 where name = 'ours'")
    factory.submit("ours")
    calls = rpc.call(people.new("ann", "remote_worker"))
    stream = calls.stream([declared("ours", timeout_s=10_000.0)])
    (one,) = await assigned(stream, 1)
    assert one.timeout_ms == 10_000


@pytest.mark.parametrize("role", ["remote_worker", "declarer"])
async def test_refused_schema_of_one_type_keeps_no_other_from_being_served(
    rpc: RpcHarness, people: People, factory: JobFactory, role: str
) -> None:
    people.role("declarer", "workers:claim", "workers:declare")
    calls = rpc.call(people.new("ann", role))
    endless = {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}
    good = {"type": "object", "required": ["x"]}
    factory.submit("new")
    stream = calls.stream([declared("new", arguments=endless), declared("other", arguments=good)])
    first = await asyncio.wait_for(stream.read(), PATIENCE)
    assert [(one.job_type, list(one.fields)) for one in first.ignored] == [("new", ["arguments"])]
    assert "leads to itself" in first.ignored[0].arguments_refused
    assert policy(factory.conn, "new")["arguments"] is None
    assert policy(factory.conn, "other")["arguments"] == good
    (one,) = await assigned(stream, 1)
    assert await calls.finish(one) == [ACCEPTED]
