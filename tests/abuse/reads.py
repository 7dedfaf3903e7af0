"""Reads of large values through every interface."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count

from tests.abuse.case import Case, Reply, Target, exchange, http, request_bytes
from tests.abuse.target import LISTS

LARGEST: dict[str, object] = {"a": [[]] * 340_000}
STOP = {"enabled": False}
ACCEPT = {"Accept": "application/json, text/event-stream"}


def _tool(label: str, tool: str, **arguments: object) -> Case:
    """A call of an MCP tool; the argument `job` names a job of the target."""

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
        interface="mcp",
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


_numbers = count()


def _kept_schedule(payload: object, suffix: str = "") -> Callable[[Target], str]:
    """The path of a new schedule with this payload, changed once; each try creates another."""

    def path(target: Target) -> str:
        name = f"kept-{next(_numbers)}"
        with target.connection() as conn:
            # As the server does after it has checked the payload.
            conn.execute("select set_config('laneway.payload_checked', 'on', false)")
            conn.execute(
                "insert into laneway.schedules (name, job_type, cron, payload, updated_by)"
                " values (%s, 'x', '0 5 * * *', %s, 'operator')",
                (name, json.dumps(payload)),
            )
            conn.execute("update laneway.schedules set cron = '0 6 * * *' where name = %s", (name,))
        return f"/admin/schedules/{name}{suffix}"

    return path


def _new_schedule(payload: object) -> Callable[[Target], bytes]:
    def body(_: Target) -> bytes:
        name = f"new-{next(_numbers)}"
        given = {"name": name, "job_type": "x", "cron": "0 5 * * *", "payload": payload}
        return json.dumps(given).encode()

    return body


def _schedules() -> Iterator[Case]:
    for size in (60_000, 340_000):
        payload: dict[str, object] = {"a": [[]] * size}
        changed = {"payload": {**payload, "b": 1}}
        kept = _kept_schedule(payload)
        yield http(
            f"schedule of {size} lists",
            "POST",
            "/admin/schedules",
            201,
            who="operator",
            body=_new_schedule(payload),
        )
        for label, method, path, expected, who, body in (
            ("change", "PATCH", kept, 200, "operator", changed),
            ("stop", "PATCH", kept, 200, "admin", STOP),
            ("roll-back", "POST", _kept_schedule(payload, "/rollback"), 200, "admin", b""),
            ("deletion", "DELETE", kept, 204, "admin", b""),
        ):
            name = f"{label} of {size} lists"
            yield http(name, method, path, expected, who=who, cpu_s=2.0, body=body)
    for where in (
        "/admin/schedules?limit=200",
        "/admin/schedules/lists-0/history?limit=200",
        "/admin/changes?kind=schedule&limit=200",
        "/admin/audit?limit=200",
    ):
        yield http(f"large schedules by {where}", "GET", where, 200, who="admin", memory_mb=128.0)


CASES = [*_mcp(), *_jobs(), *_schedules()]
