"""Large payloads over MCP: left out with a note, so that no read stops the server."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from mcp.shared.exceptions import MCPError

from laneway.domain.stored_json import LARGE
from laneway.mcp import endpoint
from laneway.mcp.large_payload import MESSAGE_LIMIT
from tests.api.conftest import People
from tests.mcp.test_http import ACCEPT, HOME, asked_by
from tests.support.job_factory import JobFactory

PAYLOAD = json.dumps({"a": [[]] * 40_000})


@pytest.fixture
def api(app: FastAPI) -> FastAPI:
    endpoint.install(app)
    return app


@pytest.fixture
def small_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where `json.loads` is given a large text, because that stops the event loop."""
    loads = json.loads

    def checked(text: Any, **options: Any) -> Any:
        # The MCP package parses messages, which are bounded.
        is_message = bytes(text[:10], "ascii") if isinstance(text, str) else text[:10]
        assert len(text) <= LARGE or is_message == b'{"jsonrpc"', "a large text is parsed"
        return loads(text, **options)

    monkeypatch.setattr(json, "loads", checked)


async def test_large_values_are_left_out_with_a_note(
    api: FastAPI, people: People, factory: JobFactory, small_only: None
) -> None:
    job_id = str(factory.submit(payload=PAYLOAD))
    async with asked_by(api, people.new("ann", "operator")) as ann:
        shown = await ann.call_tool("get_job", {"job_id": job_id})
        note = shown.structured_content["payload"]["left_out"]
        assert note == f"{len(PAYLOAD)} bytes of JSON: read it with GET /jobs/{{id}}"
        assert shown.structured_content["seal"]
        read = await ann.read_resource(f"laneway://jobs/{job_id}")
        assert note in read.contents[0].text
        cancelled = await ann.call_tool("cancel_job", {"job_id": job_id})
        assert cancelled.structured_content["status"] == "cancelled"


async def test_list_over_mcp_reads_no_payloads(
    api: FastAPI, people: People, factory: JobFactory, small_only: None
) -> None:
    # Together they are larger than a page with payloads may be.
    text = json.dumps({"a": "x" * 1_000_000})
    made = {str(factory.submit(payload=text)) for _ in range(12)}
    async with asked_by(api, people.new("bo", "viewer")) as bo:
        listed = await bo.call_tool("list_jobs", {"limit": 200})
    page = listed.structured_content
    assert {job["id"] for job in page["items"]} == made
    assert page["next_cursor"] is None


async def test_submit_over_mcp_parses_no_large_answer(
    api: FastAPI, people: People, small_only: None
) -> None:
    async with asked_by(api, people.new("ann", "operator")) as ann:
        made = await ann.call_tool(
            "submit_job", {"job_type": "a", "payload": {"a": "x" * (2 * LARGE)}}
        )
    assert made.structured_content["status"] == "approved"


async def test_message_above_its_limit_is_refused(api: FastAPI, people: People) -> None:
    ann = people.new("ann", "operator")
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(api)) as http:
        body = b'{"jsonrpc": "2.0", "id": 1, "method": "' + b"x" * MESSAGE_LIMIT + b'"}'
        answer = await http.post(f"{HOME}/mcp", content=body, headers={**ann.headers, **ACCEPT})
    assert answer.status_code == 413
    assert f"at most {MESSAGE_LIMIT} bytes besides the payload" in answer.json()["detail"]


async def test_payload_of_the_largest_size_is_submitted_over_mcp(
    api: FastAPI, people: People, factory: JobFactory
) -> None:
    payload = {"a": [[]] * 340_000, "text": 'é"]}\\'}
    async with asked_by(api, people.new("ann", "operator")) as ann:
        made = await ann.call_tool("submit_job", {"job_type": "a", "payload": payload})
        assert made.structured_content["status"] == "approved"
        with pytest.raises(MCPError, match="payload: is at least 1048584 bytes of JSON"):
            await ann.call_tool("submit_job", {"job_type": "a", "payload": {"a": "x" * 2**20}})
    (stored,) = factory.conn.execute("select payload from laneway.jobs").fetchall()
    assert stored[0] == payload


async def test_large_payload_is_refused_by_place_and_rule(api: FastAPI, people: People) -> None:
    ann = people.new("ann", "operator")
    deep = '{"a": ' + "[" * 70 + "]" * 70 + ', "b": "' + "x" * MESSAGE_LIMIT + '"}'
    call = f'{{"name": "submit_job", "arguments": {{"job_type": "a", "payload": {deep}}}}}'
    message = f'{{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {call}}}'
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(api)) as http:
        answer = await http.post(
            f"{HOME}/mcp", content=message.encode(), headers={**ann.headers, **ACCEPT}
        )
    assert (answer.status_code, answer.json()["id"]) == (400, 1)
    message = answer.json()["error"]["message"]
    assert message.startswith("invalid_input: params.arguments.payload.a")
    assert message.endswith("is nested deeper than 64 levels")


async def test_refusal_has_an_id_that_comes_after_the_payload(api: FastAPI, people: People) -> None:
    ann = people.new("ann", "operator")
    deep = '{"id": 2, "a": ' + "[" * 70 + "]" * 70 + ', "b": "' + "x" * MESSAGE_LIMIT + '"}'
    call = f'{{"name": "submit_job", "arguments": {{"job_type": "a", "payload": {deep}}}}}'
    message = f'{{"jsonrpc": "2.0", "method": "tools/call", "params": {call}, "id": 7}}'
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(api)) as http:
        answer = await http.post(
            f"{HOME}/mcp", content=message.encode(), headers={**ann.headers, **ACCEPT}
        )
    assert (answer.status_code, answer.json()["id"]) == (400, 7)
    assert answer.json()["error"]["message"].endswith("is nested deeper than 64 levels")


@pytest.mark.parametrize(
    "message",
    [
        '{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params" {"a": "LARGE"}}',
        '{"jsonrpc": "2.0", "id": 7, "method": "tools/call" "params": {"a": "LARGE"}}',
        '{"jsonrpc": "2.0", "id": 7, "method": "LARGE", "params": {"a": tru}}',
        '{"jsonrpc": "2.0", "id": 7, "params": {"arguments": {"payload": {}, "a": "LARGE"}}',
        '{"jsonrpc": "2.0", "id": 7, "params": {"arguments": {"payload": {"a": "LARGE"}}',
    ],
)
async def test_large_message_that_is_not_json_is_a_parse_error(
    api: FastAPI, people: People, message: str
) -> None:
    ann = people.new("ann", "operator")
    sent = message.replace("LARGE", "x" * MESSAGE_LIMIT).encode()
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(api)) as http:
        answer = await http.post(f"{HOME}/mcp", content=sent, headers={**ann.headers, **ACCEPT})
    assert answer.status_code == 400, answer.text
    body = answer.json()
    assert (body["id"], body["error"]["code"]) == (7, -32700)
