"""Reads of large values at every door."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tests.abuse.case import Case, Reply, Target, exchange, http, request_bytes
from tests.abuse.target import LISTS

LARGEST: dict[str, object] = {"a": [[]] * 340_000}
STOP = {"enabled": False}
ACCEPT = {"Accept": "application/json, text/event-stream"}


def _tool(label: str, tool: str, **arguments: object) -> Case:
    """A call of an MCP tool; an argument `job` names a job of the target."""

    async def send(target: Target) -> Reply:
        given = {
            name: target.jobs[str(value)] if name == "job_id" else value
            for name, value in arguments.items()
        }
        params = {"name": tool, "arguments": given}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        body = json.dumps(message).encode()
        reply = await exchange(
            target, request_bytes(target, "POST", "/mcp", "operator", ACCEPT, body)
        )
        if reply.status == 200 and json.loads(reply.text)["result"].get("isError"):
            return Reply("refused", reply.text)
        return reply

    return Case(f"mcp {label}", "mcp", send, (200,))


def _mcp() -> Iterator[Case]:
    yield _tool("list of large jobs", "list_jobs", limit=200)
    yield _tool("list of jobs of many lists", "list_jobs", limit=200, job_type="lists")
    yield _tool("job of many lists", "get_job", job_id="lists")
    yield _tool("search over large jobs", "list_jobs", limit=200, q="zzz")
    yield _tool("submit of many lists", "submit_job", job_type="x", payload={"a": [[]] * 60_000})
    yield _tool("submit of 340000 lists", "submit_job", job_type="x", payload=LARGEST)
    yield http(
        "mcp message of many lists",
        "POST",
        "/mcp",
        413,
        who="operator",
        body={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": LISTS},
        headers=ACCEPT,
        door="mcp",
    )


def _jobs() -> Iterator[Case]:
    lists = "/jobs?limit=200&job_type=lists"
    yield http("list of jobs of many lists", "GET", lists, 200, who="viewer", memory_mb=128.0)
    yield http(
        "job of many lists",
        "GET",
        lambda target: f"/jobs/{target.jobs['lists']}",
        200,
        who="viewer",
    )


def _schedules() -> Iterator[Case]:
    given = {"job_type": "x", "cron": "0 5 * * *"}
    for size in (60_000, 340_000):
        name = f"of-{size}"
        payload: dict[str, object] = {"a": [[]] * size}
        path = f"/admin/schedules/{name}"
        # A case that is tried again finds it there.
        yield http(
            f"schedule of {size} lists",
            "POST",
            "/admin/schedules",
            201,
            409,
            422,
            who="operator",
            body={**given, "name": name, "payload": payload},
        )
        yield http(
            f"change to {size} lists",
            "PATCH",
            path,
            200,
            404,
            422,
            who="operator",
            cpu_s=2.0,
            body={"payload": {**payload, "b": 1}},
        )
        for label, method, where, body in (
            ("stop", "PATCH", path, STOP),
            ("roll-back", "POST", f"{path}/rollback", b""),
            ("deletion", "DELETE", path, b""),
        ):
            yield http(
                f"{label} of {size} lists",
                method,
                where,
                200,
                204,
                404,
                who="admin",
                cpu_s=2.0,
                body=body,
            )
    for path in (
        "/admin/schedules?limit=200",
        "/admin/schedules/lists-0/history?limit=200",
        "/admin/changes?kind=schedule&limit=200",
        "/admin/audit?limit=200",
    ):
        yield http(f"large schedules by {path}", "GET", path, 200, who="admin", memory_mb=128.0)


CASES = [*_mcp(), *_jobs(), *_schedules()]
