"""/mcp on the server, called by the official client over HTTP."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import httpx2
import psycopg
import pytest
from fastapi import FastAPI
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl, TypeAdapter, UrlConstraints

from laneway import Laneway
from laneway.api.routes.description import describe
from laneway.mcp import endpoint
from laneway.mcp.tools import TOOLS
from tests.api.conftest import People, Principal
from tests.api.test_app import served
from tests.support.job_factory import JobFactory

HOME = "http://jobs.test"
PING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
ACCEPT = {"Accept": "application/json, text/event-stream"}
# Before 2026 clients start with a handshake; since then every message is independent.
MODES = ["legacy", "auto"]


@pytest.fixture
def api(app: FastAPI) -> FastAPI:
    endpoint.install(app)
    return app


@asynccontextmanager
async def asked_by(
    api: Any, who: Principal, mode: Any = "auto", path: str = "/mcp"
) -> AsyncIterator[Any]:
    transport = httpx2.ASGITransport(api)
    async with (
        httpx2.AsyncClient(transport=transport, headers=who.headers) as http,
        Client(streamable_http_client(f"{HOME}{path}", http_client=http), mode=mode) as client,
    ):
        yield client


@pytest.mark.parametrize("mode", MODES)
async def test_tools_work_as_the_token_allows(
    api: FastAPI,
    people: People,
    factory: JobFactory,
    conn: psycopg.Connection[Any],
    mode: str,
) -> None:
    job_id = str(factory.submit())
    ann, bo = people.new("ann", "operator"), people.new("bo", "viewer")
    async with asked_by(api, ann, mode) as admin, asked_by(api, bo, mode) as viewer:
        assert len((await admin.list_tools()).tools) == len(TOOLS) - len({"send_event"})
        assert "cancel_job" not in {t.name for t in (await viewer.list_tools()).tools}
        both = await asyncio.gather(
            admin.call_tool("reprioritize_job", {"job_id": job_id, "priority": 3}),
            viewer.call_tool("cancel_job", {"job_id": job_id}),
            viewer.call_tool("get_job", {"job_id": job_id}),
        )
        assert both[0].structured_content["priority"] == 3
        assert both[1].is_error
        assert both[1].content[0].text == "forbidden: needs the permission jobs:cancel"
        assert both[2].structured_content["id"] == job_id
        status = await viewer.read_resource("workers/status")
        assert '"interactive"' in status.contents[0].text
    rows = conn.execute(
        "select actor, door, outcome, action from laneway.audit order by actor, outcome, action"
    ).fetchall()
    assert rows == [
        ("ann", "mcp", "done", "job.reprioritized"),
        ("bo", "mcp", "done", "GET /admin/workers/status"),
        ("bo", "mcp", "done", "GET /jobs/{job_id}"),
        ("bo", "mcp", "refused", "POST /jobs/{job_id}/cancel"),
    ], "each call"


async def test_clients_of_earlier_protocols_are_listed_absolute_uris_only(
    api: FastAPI, people: People
) -> None:
    # As mcp 1.x parses a resource: one relative name made the whole list fail.
    absolute = TypeAdapter(Annotated[AnyUrl, UrlConstraints(host_required=False)])
    async with asked_by(api, people.new("bo", "viewer"), "legacy") as client:
        (only,) = (await client.list_resources()).resources
        assert only.uri == "laneway://workers/status"
        read = await client.read_resource(only.uri)
        for uri in (only.uri, read.contents[0].uri):
            assert str(absolute.validate_python(str(uri))) == only.uri


@pytest.mark.parametrize(
    "value,rule",
    [
        ("[" * 5000 + "]" * 5000, "is nested deeper than 64 levels"),
        ("1" * 5000, "numbers may have at most 308 digits"),
    ],
)
async def test_unreadable_message_is_refused_by_place_and_rule(
    api: FastAPI, people: People, value: str, rule: str
) -> None:
    arguments = f'{{"job_type": "a", "payload": {{"x": {value}}}}}'
    call = (
        '{"jsonrpc": "2.0", "id": 1, "method": "tools/call",'
        f' "params": {{"name": "submit_job", "arguments": {arguments}}}}}'
    )
    ann = people.new("ann", "operator")
    transport = httpx2.ASGITransport(api)
    headers = {**ACCEPT, **ann.headers, "Content-Type": "application/json"}
    async with httpx2.AsyncClient(transport=transport, base_url=HOME, headers=headers) as http:
        answer = await http.post("/mcp", content=call.encode())
    text = answer.text
    assert "payload.x" in text
    assert rule in text


async def test_without_a_token_nothing_of_it_runs(
    api: FastAPI, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*args: Any) -> None:
        pytest.fail("it ran")

    monkeypatch.setattr("laneway.mcp.exchange.handle", never)
    ann = people.new("ann", "operator")
    transport = httpx2.ASGITransport(api)
    async with httpx2.AsyncClient(transport=transport, base_url=HOME, headers=ACCEPT) as http:
        for headers in ({}, {"Authorization": "Bearer lw_x"}, {"Cookie": "laneway_session=x"}):
            answer = await http.post("/mcp", json=PING, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
            assert answer.headers["www-authenticate"] == "Bearer"
            assert answer.headers["x-request-id"] == answer.json()["request_id"]
        page = {**ann.headers, "Origin": HOME}
        answer = await http.post("/mcp", json=PING, headers=page)
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
        for method in ("GET", "DELETE"):
            answer = await http.request(method, "/mcp", headers=ann.headers)
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


async def test_answers_are_json_and_hold_no_session(api: FastAPI, people: People) -> None:
    transport = httpx2.ASGITransport(api)
    async with httpx2.AsyncClient(transport=transport, base_url=HOME, headers=ACCEPT) as http:
        http.headers.update(people.new("ann", "viewer").headers)
        answer = await http.post("/mcp", json=PING)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "application/json"
        assert "mcp-session-id" not in answer.headers
        assert len(answer.json()["result"]["tools"]) == 7
        broken = await http.post("/mcp", content=b"{", headers={"Content-Type": "application/json"})
        assert 400 <= broken.status_code < 500


async def test_audit_entries_have_request_id_and_address(
    api: FastAPI, people: People, factory: JobFactory, conn: psycopg.Connection[Any]
) -> None:
    call = {"name": "cancel_job", "arguments": {"job_id": str(factory.submit())}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    headers = {**ACCEPT, **people.new("ann", "operator").headers, "X-Request-Id": "mine-1"}
    transport = httpx2.ASGITransport(api, client=("192.0.2.7", 1234))
    async with httpx2.AsyncClient(transport=transport, base_url=HOME) as http:
        answer = await http.post("/mcp", json=message, headers=headers)
        assert not answer.json()["result"].get("isError"), answer.text
    rows = conn.execute("select request_id, address::text, door from laneway.audit").fetchall()
    assert rows == [("mine-1", "192.0.2.7", "mcp")]


async def test_it_works_under_a_prefix(dsn: str, people: People, factory: JobFactory) -> None:
    lw = Laneway(dsn)
    outer = FastAPI()
    outer.mount("/laneway", lw.asgi())
    job_id = str(factory.submit())
    try:
        async with asked_by(outer, people.new("ann", "viewer"), path="/laneway/mcp") as client:
            found = await client.call_tool("get_job", {"job_id": job_id})
            assert found.structured_content["id"] == job_id
    finally:
        await lw.close()


async def test_mcp_is_not_a_route_of_the_api(api: FastAPI) -> None:
    assert not any("/mcp" in path for _, path in served(api))
    assert "/mcp" not in describe(api)["paths"]


def test_package_is_loaded_by_the_first_message_only() -> None:
    code = (
        "import sys, laneway.mcp.endpoint, laneway.api.app, laneway.cli.main;"
        "sys.exit('mcp' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


async def test_too_large_message_is_refused_and_no_mistake_of_ours(
    api: FastAPI, people: People
) -> None:
    ann = people.new("ann", "viewer")
    transport = httpx2.ASGITransport(api, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, headers=ann.headers) as client:
        answer = await client.post(f"{HOME}/mcp", content=b"[" * 12_000_000, headers=ACCEPT)
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
