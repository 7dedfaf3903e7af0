"""`laneway mcp` as a program."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import httpx2
import psycopg
from fastapi import FastAPI
from mcp import Client, StdioServerParameters, stdio_client

from laneway.api.http.local_auth import local_token
from laneway.domain.permissions import PERMISSIONS
from tests.api.conftest import People
from tests.cli.conftest import Run
from tests.support.job_factory import JobFactory


async def test_program_reads_a_database_over_its_stdin(dsn: str, tmp_path: Path) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        job_id = JobFactory(conn).submit()
    program = StdioServerParameters(
        command=sys.executable,
        args=["-m", "laneway", "--by", "ann", "mcp", "--write"],
        env={**os.environ, "LANEWAY_DATABASE_URL": dsn},
        cwd=tmp_path,
    )
    with (tmp_path / "stderr").open("w") as stderr:
        async with Client(stdio_client(program, errlog=stderr)) as client:
            found: Any = await client.call_tool("list_jobs", {})
            assert [one["id"] for one in found.structured_content["items"]] == [str(job_id)]
            ended: Any = await client.call_tool("cancel_job", {"job_id": str(job_id)})
            assert ended.structured_content["status"] == "cancelled"
    with psycopg.connect(dsn) as conn:
        rows = conn.execute("select actor, door, action from laneway.audit").fetchall()
        assert rows == [("ann", "mcp", "job.cancelled")]


def test_unreadable_message_is_answered_with_place_and_rule(program: Run) -> None:
    unreadable = {
        "is nested deeper than 64 levels": "[" * 5000 + "]" * 5000,
        "numbers may have at most 308 digits": "1" * 5000,
    }
    calls = [
        '{"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "submit_job", "arguments":'
        f' {{"job_type": "a", "payload": {{"id": 1, "x": {value}}}}}}},'
        f' "id": {json.dumps(message_id)}}}\n'
        for message_id, value in zip((7, "seven"), unreadable.values(), strict=True)
    ]
    done = program("mcp", "--write", input="".join(calls))
    answers = {
        one["id"]: one["error"]["message"] for one in map(json.loads, done.stdout.split("\n")[:-1])
    }
    assert answers.keys() == {7, "seven"}
    for message, rule in zip((answers[7], answers["seven"]), unreadable, strict=True):
        assert "message.params.arguments.payload.x" in message
        assert rule in message


def test_unreachable_server_is_reported_at_start(run: Run) -> None:
    nowhere = run("--server", "http://127.0.0.1:1", "--token", "lw_x", "mcp")
    assert (nowhere.exit_code, len(nowhere.stderr.splitlines())) == (5, 1)
    readable = run("--server", "http://jobs.example.org", "--token", "lw_x", "mcp")
    assert readable.exit_code == 2
    assert "https" in readable.stderr
    away = {"LANEWAY_DATABASE_URL": "postgresql://user@127.0.0.1:1/none"}
    assert run("mcp", env=away).exit_code == 5


async def test_inner_api_accepts_only_its_own_process(app: FastAPI, people: People) -> None:
    token = local_token(app, "ann")
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
        me = await http.get("/me", headers={"Authorization": f"Bearer {token}"})
        assert (me.json()["name"], len(me.json()["permissions"])) == ("ann", len(PERMISSIONS))
        known = people.new("bo", "platform_admin")
        for headers in (known.headers, {"Cookie": "laneway_session=x"}, {}):
            assert (await http.get("/me", headers=headers)).status_code == 401
