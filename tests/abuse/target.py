"""A real server on a real database, with callers of every kind."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from laneway.embedded.postgres import EmbeddedPostgres
from laneway.store.migrate import migrate
from tests.abuse.case import Target
from tests.api.conftest import People
from tests.support.job_factory import JobFactory

# Part of another tenant's payload: a response to any other caller with it is a leak.
MARKER = "of-another-tenant-7391"
LARGE_JOBS = 40
# Many small values take longest to parse.
LISTS: dict[str, list[object]] = {"a": [[]] * 340_000}
JOBS_OF_LISTS = 8


@contextmanager
def served(**variables: str) -> Iterator[Target]:
    """Run `laneway server --grpc` until the block ends."""
    with tempfile.TemporaryDirectory(prefix="laneway-abuse-") as name:
        folder = Path(name)
        # PostgreSQL runs as another account where this one is root.
        folder.chmod(0o755)
        with EmbeddedPostgres(folder / "data") as postgres:
            dsn = postgres.dsn
            migrate(dsn)
            tokens, jobs = _create_data(dsn)
            yield from _run(dsn, folder, tokens, jobs, variables)


def _create_data(dsn: str) -> tuple[dict[str, str], dict[str, str]]:
    with psycopg.connect(dsn, autocommit=True) as conn:
        people, factory = People(conn), JobFactory(conn)
        tokens = {"nobody": people.new("nobody").token}
        tokens["submitter"] = people.new("submitter", "submitter", workspace="mine").token
        tokens["own"] = people.new("own", "submitter").token
        tokens["viewer"] = people.new("viewer", "viewer", workspace="mine").token
        tokens["other"] = people.new("other", "operator", workspace="theirs").token
        tokens["operator"] = people.new("operator", "operator").token
        tokens["admin"] = people.new("admin", "platform_admin").token
        people.role("keeper", "access:manage")
        tokens["keeper"] = people.new("keeper", "keeper", scope="all").token
        lanes = ["interactive"]
        tokens["worker"] = people.new("worker", "remote_worker", lanes=lanes).token
        jobs = {
            "theirs": str(
                factory.submit(
                    workspace="theirs", payload=json.dumps({"word": MARKER}), created_by="other"
                )
            ),
            "mine": str(factory.submit(workspace="mine", created_by="submitter")),
        }
        for number in range(LARGE_JOBS):
            text = json.dumps({"n": number, "text": "a " * 450_000})
            factory.submit("large", workspace="mine", payload=text)
        text = json.dumps(LISTS, separators=(",", ":"))
        for _ in range(JOBS_OF_LISTS):
            jobs["lists"] = str(factory.submit("lists", workspace="mine", payload=text))
        # PostgreSQL counts the spaces that it adds.
        fewer = json.dumps({"a": [[]] * 250_000}, separators=(",", ":"))
        for number in range(JOBS_OF_LISTS):
            conn.execute(
                "insert into laneway.schedules (name, job_type, cron, payload, updated_by)"
                " values (%s, 'lists', '0 5 * * *', %s, 'operator')",
                (f"lists-{number}", fewer),
            )
            conn.execute(
                "insert into laneway.audit (actor, door, action, kind, name, outcome, after)"
                " values ('operator', 'http', 'schedule.created', 'schedule', 'a', 'done', %s)",
                (json.dumps({"payload": LISTS}),),
            )
        return tokens, jobs


def _run(
    dsn: str, folder: Path, tokens: dict[str, str], jobs: dict[str, str], more: dict[str, str]
) -> Iterator[Target]:
    variables = {
        **os.environ,
        "LANEWAY_DATABASE_URL": dsn,
        "LANEWAY_LOG_LEVEL": "WARNING",
        "LANEWAY_GRPC_PORT": "0",
        **more,
    }
    command = [sys.executable, "-m", "laneway", "server", "--port", "0", "--grpc"]
    with (
        (folder / "stderr").open("wb") as stderr,
        subprocess.Popen(
            command, env=variables, cwd=folder, stdout=subprocess.PIPE, stderr=stderr, text=True
        ) as process,
    ):
        try:
            assert process.stdout is not None
            output = ""
            while "serving http" not in output:
                line = process.stdout.readline()
                assert line, (folder / "stderr").read_text()
                output += line
            grpc_port = re.search(r"remote workers on \S*?:(\d+)", output)
            port = re.search(r"serving http://\S+?:(\d+)", output)
            assert port is not None
            assert grpc_port is not None
            yield Target(
                "127.0.0.1",
                int(port[1]),
                int(grpc_port[1]),
                process.pid,
                dsn,
                tokens,
                (MARKER, "Traceback", "psycopg", "postgresql://", *tokens.values()),
                jobs,
            )
        finally:
            process.terminate()
            try:
                process.wait(40)
            except subprocess.TimeoutExpired:
                process.kill()
