"""Hostile gRPC calls: without credentials, and from a worker whose token covers one lane."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from uuid import uuid4

import grpc

from laneway.rpc._generated import dispatch_pb2 as pb
from tests.abuse.case import Case, Reply, Target

MIB = 1024 * 1024
SERVICE = "laneway.v1.DispatchService"
METHODS = tuple(one.name for one in pb.DESCRIPTOR.services_by_name["DispatchService"].methods)
EMPTY = b"\x12\x00"
UNKNOWN = b"\x98\x06\x00"
NO_TOKEN = ("UNAUTHENTICATED", "RESOURCE_EXHAUSTED")
REFUSED = ("INVALID_ARGUMENT", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED")


async def call(
    target: Target, method: str, data: bytes, who: str | None, service: str = SERVICE
) -> Reply:
    """Send bytes to a call; return the name of its status, and its first response or details."""
    metadata = [] if who is None else [("authorization", f"Bearer {target.tokens.get(who, who)}")]
    options = [("grpc.max_send_message_length", -1)]
    address = f"{target.host}:{target.grpc_port}"
    async with grpc.aio.insecure_channel(address, options) as channel:
        stub: Any = channel.unary_stream(f"/{service}/{method}")
        stream = stub(data, metadata=metadata, timeout=20)
        try:
            first = await stream.read()
        except grpc.aio.AioRpcError as error:
            return Reply(error.code().name, error.details() or "")
        text = "" if first is grpc.aio.EOF else first.decode("utf-8", "replace")
        stream.cancel()
        return Reply("OK", text)


def case(
    name: str, method: str, data: bytes | Callable[[Target], bytes], who: str | None, *expected: str
) -> Case:
    async def send(target: Target) -> Reply:
        return await call(target, method, data(target) if callable(data) else data, who)

    return Case(f"grpc {name}", "grpc", send, expected)


def handshake(*types: pb.JobType) -> bytes:
    request = pb.StreamJobsRequest(worker_id=str(uuid4()), job_types=types, max_in_flight=10)
    return request.SerializeToString()


def declared(name: str, **declaration: Any) -> pb.JobType:
    return pb.JobType(name=name, declaration=json.dumps(declaration))


def _anonymous() -> Iterator[Case]:
    for method in METHODS:
        for who in (None, "nonsense"):
            label = "no token" if who is None else "wrong token"
            yield case(f"{method} 15 MiB {label}", method, EMPTY * (15 * MIB // 2), who, *NO_TOKEN)
            yield case(f"{method} no message {label}", method, b"\xff" * 1000, who, *NO_TOKEN)
        yield case(f"{method} no role", method, EMPTY * 1000, "nobody", "PERMISSION_DENIED")

    async def health(target: Target) -> Reply:
        return await call(target, "Check", UNKNOWN * MIB, None, "grpc.health.v1.Health")

    yield Case("grpc health 3 MiB", "grpc", health, REFUSED)


def _floods() -> Iterator[Case]:
    for method in METHODS:
        for name, part in (("parts", EMPTY), ("unknown fields", UNKNOWN)):
            data = part * (4 * MIB // len(part) - 1)
            yield case(f"{method} 4 MiB of {name}", method, data, "worker", *REFUSED)
    lines = pb.ReportProgressRequest(updates=[pb.Update(lines=[pb.LogLine()] * 500_000)])
    data = lines.SerializeToString()
    yield case("ReportProgress empty lines", "ReportProgress", data, "worker", *REFUSED)


def _schemas() -> Iterator[Case]:
    defs = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}
    hostile: dict[str, Any] = {
        "pattern by reference": {
            "properties": {"x": {"$ref": "#/default"}},
            "default": {"pattern": "^(a+)+$"},
        },
        "doubling references": {"$defs": {**defs, "d40": {}}, "$ref": "#/$defs/d0"},
        "remote reference": {"$ref": "http://127.0.0.1:9/schema.json"},
        "dynamic reference": {"$dynamicRef": "#a"},
        "loop": {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        "900 kB": {"description": "x" * 900_000},
        "many branches": {"anyOf": [{"type": "string"}] * 3000},
    }
    for name, schema in hostile.items():
        yield Case(f"grpc schema {name}", "grpc", _declare(schema), ("left out",))


def _declare(schema: Any) -> Callable[[Target], Awaitable[Reply]]:
    """Declare an invalid schema: its type is served, but the schema is not published."""

    async def send(target: Target) -> Reply:
        before = _policy(target, "ingestion")
        data = handshake(declared("ingestion", arguments=schema))
        reply = await call(target, "StreamJobs", data, "worker")
        is_out = reply.status == "OK" and "arguments" in reply.text
        is_same = (before or [{}])[0].get("arguments") is None
        is_same = is_same and _policy(target, "ingestion")[0]["arguments"] is None
        return Reply("left out" if is_out and is_same else reply.status, reply.text)

    return send


def _policy(target: Target, job_type: str) -> Any:
    with target.connection() as conn:
        return conn.execute(
            "select to_jsonb(t) - 'published_at' from laneway.job_types t where name = %s",
            [job_type],
        ).fetchone()


def _escapes() -> Iterator[Case]:
    for lane in ({}, {"lane": "interactive"}, {"lane": "default"}, {"lane": "new-lane"}):
        data = handshake(declared("greet", **lane))
        yield case(f"lane escape {lane}", "StreamJobs", data, "worker", "PERMISSION_DENIED")

    async def rewrite(target: Target) -> Reply:
        with target.connection() as conn:
            conn.execute(
                "update laneway.job_types set published_at = coalesce(published_at, now())"
                " where name = 'polarity'"
            )
        before = _policy(target, "polarity")
        declaration = declared(
            "polarity",
            priority=32767,
            max_age_s=1.0,
            retention={"completed_s": 1.0},
            limits=["stolen"],
            arguments={"type": "object", "required": ["never"]},
        )
        reply = await call(target, "StreamJobs", handshake(declaration), "worker")
        with target.connection() as conn:
            made = conn.execute("select 1 from laneway.limits where name = 'stolen'").fetchone()
        is_same = _policy(target, "polarity") == before and made is None
        return Reply("unchanged" if is_same else "changed", reply.text)

    yield Case("grpc policy rewritten by a claim token", "grpc", rewrite, ("unchanged",))


def _forged() -> Iterator[Case]:
    for name, message in {
        "ReportResult": lambda claim: pb.ReportResultRequest(
            worker_id=str(uuid4()), results=[pb.Result(claim=claim, finish=pb.Finish(result="1"))]
        ),
        "ReportProgress": lambda claim: pb.ReportProgressRequest(
            worker_id=str(uuid4()), updates=[pb.Update(claim=claim, checkpoint='"x"')]
        ),
        "Heartbeat": lambda claim: pb.HeartbeatRequest(worker_id=str(uuid4()), claims=[claim]),
        "AcquireLimits": lambda claim: pb.AcquireLimitsRequest(
            worker_id=str(uuid4()), claim=claim, wants={"openai": 8}
        ),
    }.items():
        yield Case(f"grpc {name} for another's job", "grpc", _forge(name, message), ("untouched",))


def _forge(name: str, message: Callable[[pb.Claim], Any]) -> Callable[[Target], Awaitable[Reply]]:
    async def send(target: Target) -> Reply:
        claim = pb.Claim(job_id=target.jobs["theirs"], attempt=1)
        reply = await call(target, name, message(claim).SerializeToString(), "worker")
        with target.connection() as conn:
            touched = conn.execute(
                "select 1 from laneway.outcome o join laneway.jobs j using (seq) where j.id = %s"
                " union all select 1 from laneway.limit_usage where running > 0",
                [target.jobs["theirs"]],
            ).fetchone()
        return Reply("untouched" if touched is None else "touched", reply.text)

    return send


CASES = (*_anonymous(), *_floods(), *_schemas(), *_escapes(), *_forged())
