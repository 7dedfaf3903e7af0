"""The tools and resources, called by the official client in memory."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import httpx2
import psycopg
import pytest
from fastapi import FastAPI
from mcp import Client

from laneway.api.models import jobs
from laneway.domain.job import Progress
from laneway.domain.wait import WaitsFor
from laneway.http import AsyncClient
from laneway.mcp import outputs
from laneway.mcp.server import always, make_server
from laneway.mcp.tools import TOOLS
from laneway.operations.models import output_model
from laneway.store import leases
from laneway.store.leases import LogEntry
from tests.api.conftest import People, Principal
from tests.support.job_factory import JobFactory
from tests.support.short_ids import short_form

READING = {
    "list_jobs", "get_job", "explain_job", "list_flows", "get_flow", "list_lanes", "find_lane",
}  # fmt: skip


@asynccontextmanager
async def asked_by(app: FastAPI, who: Principal, *, is_writing: bool = True) -> AsyncIterator[Any]:
    """An MCP client whose server calls the API as this principal."""
    transport = httpx2.ASGITransport(app)
    async with (
        AsyncClient("http://localhost", who.token, transport=transport, door="mcp") as api,
        Client(make_server(always(api), is_writing=is_writing)) as client,
    ):
        yield client


async def call_tool(client: Any, tool: str, **arguments: Any) -> Any:
    """Call a tool; return its result. A refusal fails."""
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    return answer.structured_content


async def refused(client: Any, tool: str, **arguments: Any) -> str:
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error
    assert "Traceback" not in answer.content[0].text
    return str(answer.content[0].text)


async def test_by_default_there_are_only_tools_that_read(app: FastAPI, people: People) -> None:
    admin = people.new("ann", "platform_admin")
    async with asked_by(app, admin, is_writing=False) as client:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == READING
        assert all(tool.annotations.read_only_hint for tool in tools)
        assert "Unknown tool" in await refused(client, "submit_job", job_type="greet")
    async with asked_by(app, admin) as client:
        writing = {t.name: t.annotations for t in (await client.list_tools()).tools}
        assert writing.keys() == TOOLS.keys()
        destructive = {name for name, one in writing.items() if one.destructive_hint}
        assert destructive == {"reject_job", "cancel_job", "cancel_flow", "tune_lane"}
        again = {name for name, one in writing.items() if not one.idempotent_hint}
        assert again == {"submit_job", "submit_flow", "retry_flow", "send_event"}


async def test_tools_are_listed_as_the_token_may_use_them(app: FastAPI, people: People) -> None:
    expected = {
        "viewer": READING,
        "approver": READING - {"list_lanes", "find_lane"} | {"approve_job", "reject_job"},
        "submitter": READING - {"list_lanes", "find_lane"}
        | {"submit_job", "submit_flow", "cancel_job", "cancel_flow", "retry_flow", "run_job_now"},
        "remote_worker": set(),
    }
    for role, names in expected.items():
        async with asked_by(app, people.new(role, role)) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == names


async def test_job_is_submitted_found_explained_moved_and_cancelled(
    app: FastAPI, people: People, conn: psycopg.Connection[Any]
) -> None:
    async with asked_by(app, people.new("ann", "operator")) as client:
        job = await call_tool(
            client, "submit_job", job_type="greet", payload={"name": "Bo"}, tags=["x"]
        )
        assert (job["status"], job["created_by"], job["tags"]) == ("approved", "ann", ["x"])
        assert job["label"] == "queued"
        again = {"job_type": "greet", "unique_key": "k"}
        first = await call_tool(client, "submit_job", **again)
        assert await call_tool(client, "submit_job", **again) == {**first, "duplicate": True}
        alike: dict[str, Any] = {
            "job_type": "scan",
            "payload": {"a": 1, "b": 1},
            "unique_by": ["a"],
            "run_at": "2099-01-01T00:00:00Z",
            "concurrency_key": "c",
            "max_retries": 1,
        }
        scan = await call_tool(client, "submit_job", **alike)
        assert scan["max_retries"] == 1
        alike["payload"] = {"a": 1, "b": 2}
        assert (await call_tool(client, "submit_job", **alike))["id"] == scan["id"]
        await call_tool(client, "cancel_job", job_id=scan["id"])
        page = await call_tool(client, "list_jobs", status="approved", limit=1)
        assert [one["id"] for one in page["items"]] == [first["id"]]
        rest = await call_tool(client, "list_jobs", cursor=page["next_cursor"])
        assert [one["id"] for one in rest["items"]] == [job["id"]]
        assert (await call_tool(client, "list_jobs", q="null"))["items"] == []
        whole = await call_tool(client, "get_job", job_id=job["id"])
        assert (whole["payload"], whole["attempts"]) == ({"name": "Bo"}, [])
        short = short_form(UUID(job["id"]))
        assert await call_tool(client, "get_job", job_id=short) == whole
        assert "no job id begins with ffff" in await refused(client, "get_job", job_id="ffff")
        reasons = (await call_tool(client, "explain_job", job_id=job["id"]))["reasons"]
        assert reasons[0]["code"]
        moved = await call_tool(client, "reprioritize_job", job_id=job["id"], priority=7)
        assert moved["priority"] == 7
        message = await refused(client, "run_job_now", job_id=job["id"])
        assert message.startswith(f"refused: job {job['id']} is due already")
        ended = await call_tool(client, "cancel_job", job_id=job["id"], reason="enough")
        assert ended["status"] == "cancelled"
    doors = conn.execute("select distinct door, actor from laneway.audit where actor = 'ann'")
    assert doors.fetchall() == [("mcp", "ann")]


async def test_assistant_reads_the_newest_log_lines_only(
    app: FastAPI, people: People, factory: JobFactory
) -> None:
    claim = factory.running()
    for many in (50, 15):
        lines = [LogEntry(claim, n, "INFO", f"line {n}", 0.0) for n in range(1, many + 1)]
        factory.run(leases.report([], lines))
        if many == 50:
            factory.settle(claim, "release")
            (claim,) = factory.claim()
    async with asked_by(app, people.new("ann", "platform_admin")) as client:
        shown = await call_tool(client, "get_job", job_id=str(claim.job_id))
        read = await client.read_resource(f"laneway://jobs/{claim.job_id}")
    for job in (shown, json.loads(read.contents[0].text)):
        first, second = job["attempts"]
        assert (first["log_lines"], second["log_lines"]) == (50, 15)
        assert [one["message"] for one in first["log"]] == [f"line {n}" for n in range(46, 51)]
        assert len(second["log"]) == 15


async def test_job_is_approved_as_shown_or_rejected(
    app: FastAPI, people: People, factory: JobFactory
) -> None:
    async with asked_by(app, people.new("ann", "approver")) as client:
        one, other = (factory.submit("plan", needs="approval") for _ in range(2))
        seal = (await call_tool(client, "get_job", job_id=str(one)))["seal"]
        assert "refused" in await refused(client, "approve_job", job_id=str(one), seal="another")
        assert (await call_tool(client, "approve_job", job_id=str(one), seal=seal))[
            "status"
        ] == "approved"
        ended = await call_tool(client, "reject_job", job_id=str(other), reason="too dear")
        assert ended["status"] == "cancelled"
        decisions = (await call_tool(client, "get_job", job_id=str(other)))["decisions"]
        assert (decisions[0]["decided_by"], decisions[0]["comment"]) == ("ann", "too dear")


async def test_lanes_are_listed_tuned_drained_and_resumed(app: FastAPI, people: People) -> None:
    async with asked_by(app, people.new("ann", "operator")) as client:
        lanes = {lane["name"]: lane for lane in (await call_tool(client, "list_lanes"))["items"]}
        assert lanes["interactive"]["max_slots"] == 2
        tuned = await call_tool(client, "tune_lane", name="interactive", max_slots=5, enabled=False)
        assert (tuned["max_slots"], tuned["enabled"], tuned["updated_by"]) == (5, False, "ann")
        tuned = await call_tool(
            client, "tune_lane", name="interactive", enabled=True, unbounded=True
        )
        assert (tuned["max_slots"], tuned["enabled"]) == (None, True)


async def test_status_and_jobs_are_resources(
    app: FastAPI, people: People, factory: JobFactory
) -> None:
    job_id = factory.submit()
    async with asked_by(app, people.new("ann", "viewer")) as client:
        listed = [one.uri for one in (await client.list_resources()).resources]
        assert listed == ["laneway://workers/status", "workers/status"]
        templates = (await client.list_resource_templates()).resource_templates
        assert [one.uri_template for one in templates] == ["laneway://jobs/{job_id}"]
        for uri in listed:
            status = json.loads((await client.read_resource(uri)).contents[0].text)
            assert {"paused", "lanes", "active", "workers", "leader"} <= status.keys()
            assert {lane["name"] for lane in status["lanes"]} >= {"interactive", "default"}
        read = await client.read_resource(f"laneway://jobs/{job_id}")
        assert read.contents[0].mime_type == "application/json"
        assert json.loads(read.contents[0].text)["id"] == str(job_id)
        unknown = "00000000-0000-7000-8000-000000000000"
        with pytest.raises(Exception, match=f"not_found: no job {unknown}"):
            await client.read_resource(f"laneway://jobs/{unknown}")


async def test_call_without_permission_is_refused_and_audited(
    app: FastAPI, people: People, factory: JobFactory, audit_entries: Callable[[], list[Any]]
) -> None:
    job_id = factory.submit()
    async with asked_by(app, people.new("ann", "viewer")) as client:
        message = await refused(client, "cancel_job", job_id=str(job_id))
        assert message == "forbidden: needs the permission jobs:cancel"
    assert audit_entries() == [
        ("ann", "POST /jobs/{job_id}/cancel", "route", f"/jobs/{job_id}/cancel", "refused")
    ]


async def test_each_call_leaves_one_audit_entry_even_reads(
    app: FastAPI, people: People, factory: JobFactory, audit_entries: Callable[[], list[Any]]
) -> None:
    job_id, delayed = str(factory.submit()), str(factory.submit(delay=3600))
    flow_id = str(uuid4())
    factory.conn.execute("select laneway.create_flow(%s, 'nightly')", [flow_id])
    calls: dict[str, tuple[dict[str, Any], str]] = {
        "list_jobs": ({}, "GET /jobs"),
        "get_job": ({"job_id": job_id}, "GET /jobs/{job_id}"),
        "explain_job": ({"job_id": job_id}, "GET /jobs/{job_id}/explain"),
        "list_flows": ({}, "GET /flows"),
        "get_flow": ({"flow_id": flow_id}, "GET /flows/{flow_id}"),
        "list_lanes": ({}, "GET /admin/workers/lanes"),
        "find_lane": ({"job_type": "polarity"}, "GET /admin/workers/types/lane"),
        "submit_job": ({"job_type": "greet"}, "job.submitted"),
        "run_job_now": ({"job_id": delayed}, "job.made_due"),
        "send_event": ({"name": "reviewed", "payload": {"by": "ann"}}, "event.sent"),
        "reprioritize_job": ({"job_id": job_id, "priority": 3}, "job.reprioritized"),
        "tune_lane": ({"name": "system", "max_slots": 2}, "lane.tuned"),
        "cancel_job": ({"job_id": job_id}, "job.cancelled"),
        "submit_flow": ({"name": "weekly", "jobs": [{"job_type": "greet"}]}, "flow.submitted"),
        "cancel_flow": ({"flow_id": flow_id}, "flow.cancelled"),
        "retry_flow": ({"flow_id": flow_id}, "flow.retried"),
    }
    assert calls.keys() == TOOLS.keys() - {"approve_job", "reject_job"}
    async with asked_by(app, people.new("ann", "platform_admin")) as client:
        await client.list_tools()
        for tool, (arguments, _) in calls.items():
            await call_tool(client, tool, **arguments)
        await client.read_resource("workers/status")
        await client.read_resource(f"laneway://jobs/{job_id}")
    read = [f"GET {path}" for path in ("/admin/workers/status", "/jobs/{job_id}")]
    assert [(act[0], act[1], act[4]) for act in audit_entries()] == [
        ("ann", action, "done") for action in [*(action for _, action in calls.values()), *read]
    ]


async def test_refusals_name_field_and_rule(
    app: FastAPI, people: People, factory: JobFactory
) -> None:
    job_id = str(factory.submit())
    async with asked_by(app, people.new("ann", "operator")) as client:
        for tool, arguments, expected in (
            ("list_jobs", {"statuss": "failed"}, "invalid_input: statuss: unknown argument"),
            ("list_jobs", {"limit": 500}, "invalid_input: limit: "),
            ("list_jobs", {"status": "lost"}, "invalid_input: status: "),
            ("list_jobs", {"cursor": "x"}, "invalid_input: cursor: "),
            ("get_job", {"job_id": "x"}, "invalid_input: job_id: "),
            (
                "reprioritize_job",
                {"job_id": job_id, "priority": 10**9},
                "invalid_input: priority: ",
            ),
            ("submit_job", {"job_type": " x"}, "invalid_input: job_type: "),
            ("submit_flow", {"name": "x", "jobs": []}, "invalid_input: jobs"),
            (
                "submit_flow",
                {"name": "x", "jobs": [{"job_type": "a", "delayed": 1}]},
                "invalid_input: jobs.0.delayed: ",
            ),
            (
                "submit_flow",
                {"name": "x", "jobs": [{"name": "a", "job_type": "a", "after": ["a"]}]},
                "invalid_input: ",
            ),
            ("submit_job", {"job_type": "x", "payload": {"a": "\0"}}, "invalid_input: payload"),
            ("tune_lane", {"name": "Nope"}, "invalid_input: name: "),
            ("tune_lane", {"name": "nope", "enabled": True}, "not_found: "),
            (
                "tune_lane",
                {"name": "default", "max_slots": 1, "unbounded": True},
                "invalid_input: unbounded: ",
            ),
            ("reject_job", {"job_id": job_id, "reason": "no"}, "refused: "),
        ):
            assert (await refused(client, tool, **arguments)).startswith(expected), tool


def test_names_are_those_of_the_api() -> None:
    for own, of_api in (
        (outputs.JobDetailResult, jobs.JobDetailOut),
        (outputs.ListedJob, jobs.JobOut),
        (outputs.ProgressResult, output_model(Progress)),
        (outputs.WaitsForResult, output_model(WaitsFor)),
        (outputs.ExplanationResult, jobs.ExplanationOut),
    ):
        assert own.model_fields.keys() <= of_api.model_fields.keys(), own


async def test_flow_is_listed_shown_and_cancelled(
    app: FastAPI, people: People, factory: JobFactory
) -> None:
    flow_id = str(uuid4())
    factory.conn.execute("select laneway.create_flow(%s, 'nightly')", [flow_id])
    factory.conn.execute("select laneway.submit('greet', '{}', flow => %s)", [flow_id])
    async with asked_by(app, people.new("ann", "operator")) as client:
        job = await call_tool(client, "submit_job", job_type="greet")
        child = await call_tool(client, "submit_job", job_type="greet", after=[job["id"]])
        assert child["status"] == "waiting"
        (waits,) = (await call_tool(client, "list_jobs", status="waiting"))["items"]
        assert (waits["waits_for"]["kind"], waits["waits_for"]["jobs"]) == ("jobs", [job["id"]])
        assert waits["flow"] is None
        (listed,) = (await call_tool(client, "list_flows", status="running"))["items"]
        assert (listed["id"], listed["counts"]["jobs"]) == (flow_id, 1)
        graph = await call_tool(client, "get_flow", flow_id=flow_id)
        assert [each["status"] for each in graph["jobs"]] == ["approved"]
        done = await call_tool(client, "cancel_flow", flow_id=flow_id, reason="not today")
        assert (done["changed"], done["status"]) == (1, "cancelled")


async def test_flow_is_submitted_and_retried(app: FastAPI, people: People) -> None:
    nightly = [
        {"name": "join", "job_type": "join", "after": ["page"], "after_failure": "run"},
        {"name": "page", "job_type": "page", "payload": {"n": 1}, "priority": 3},
    ]
    async with asked_by(app, people.new("ann", "operator")) as client:
        made = await call_tool(client, "submit_flow", name="nightly", jobs=nightly, tags=["t"])
        assert [one["status"] for one in made["jobs"]] == ["waiting", "approved"]
        await call_tool(client, "submit_job", job_type="page")
        found = await call_tool(client, "list_jobs", flow=made["id"])
        assert {one["id"] for one in found["items"]} == {one["id"] for one in made["jobs"]}
        page = await call_tool(client, "get_job", job_id=made["jobs"][1]["id"])
        assert (page["payload"], page["priority"]) == ({"n": 1}, 3)
        for tag, names in (("t", ["nightly"]), ("other", [])):
            listed = (await call_tool(client, "list_flows", tag=tag))["items"]
            assert [one["name"] for one in listed] == names
        await call_tool(client, "cancel_flow", flow_id=made["id"])
        again = await call_tool(client, "retry_flow", flow_id=made["id"])
        assert (again["changed"], again["status"]) == (2, "running")
        graph = await call_tool(client, "get_flow", flow_id=made["id"])
        assert [one["status"] for one in graph["jobs"]] == ["approved", "waiting"]
