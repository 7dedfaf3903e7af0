"""`laneway server` and `laneway up` as programs: the way in on first start, and what is refused."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import httpx2
import psycopg
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest
from grpc_health.v1.health_pb2_grpc import HealthStub
from psycopg.conninfo import make_conninfo

from laneway.app import server
from laneway.engine.process import start_retry
from laneway.errors import DatabaseUnavailable, SchemaMismatch
from tests.api.conftest import People
from tests.cli.conftest import PROGRAM, Run
from tests.support.warm_program import WarmPopen, WarmProgram

ANYWHERE = "0.0.0.0"  # noqa: S104 -- refused, that is the point
APP = """
from laneway import Laneway

lw = Laneway()


@lw.handler("greet")
async def greet(ctx, name: str) -> str:
    return f"hello {name}"
"""


@contextmanager
def started(dsn: str, *args: str, cwd: Path) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """The program, and its output until it served."""
    with (
        (cwd / "stderr").open("w") as stderr,
        WarmPopen(
            [*PROGRAM, *args, "--port", "0"],
            env={**os.environ, "LANEWAY_DATABASE_URL": dsn},
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout is not None
            output: list[str] = []
            while not output or not output[-1].startswith("serving http"):
                output.append(process.stdout.readline())
                assert output[-1], "ended before it served"
            yield process, output
        finally:
            process.kill()


def test_up_serves_runs_jobs_shows_the_way_in_once_and_stops_cleanly(
    dsn: str, tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text(APP)
    with started(dsn, "up", "app:lw", cwd=tmp_path) as (process, output):
        link = re.search(r"http\S+/login\?link=(\S+)", output[0])
        url = re.search(r"http://\S+", output[-1])
        assert link
        assert url
        with httpx2.Client(base_url=url[0]) as browser:
            assert browser.get("/readyz").status_code == 200
            assert browser.post("/login", data={"link": link[1]}).status_code == 303
            csrf = {"X-CSRF-Token": browser.get("/me").json()["csrf"]}
            named = {**csrf, "X-Request-Id": "wrong-1"}
            wrong = browser.post("/jobs", json={"job_type": "greet", "payload": {}}, headers=named)
            assert wrong.status_code == 422
            body = {"job_type": "greet", "payload": {"name": "Bo"}}
            made = browser.post("/jobs", json=body, headers=csrf)
            assert made.status_code == 202
            job = made.json()
            while job["status"] not in ("completed", "failed", "cancelled"):
                job = browser.get(made.headers["location"]).json()
            assert job["result"] == "hello Bo"
        process.send_signal(signal.SIGTERM)
        assert process.wait(100) == 0
    lines = (tmp_path / "stderr").read_text().splitlines()
    assert any("POST /jobs 422" in line and "wrong-1" in line for line in lines), lines
    with started(dsn, "server", cwd=tmp_path) as (process, output):
        assert "login" not in "".join(output)
        process.send_signal(signal.SIGINT)
        assert process.wait(100) == 0
    assert (tmp_path / "stderr").read_text().endswith("server stopped\n")


def test_server_accepts_remote_workers_on_request(dsn: str, tmp_path: Path) -> None:
    args = ("server", "--grpc", "--grpc-port", "0")
    with psycopg.connect(dsn, autocommit=True) as conn:
        ops = People(conn).new("ops", "operator")
    with started(dsn, *args, cwd=tmp_path) as (process, output):
        where = re.search(r"serving remote workers on (\S+)", "".join(output))
        assert where
        with grpc.insecure_channel(where[1]) as channel:
            stub = HealthStub(channel)
            assert stub.Check(HealthCheckRequest(), timeout=60).status == 1
        url = output[-1].split()[1]
        page = httpx2.get(f"{url}/metrics", headers=ops.headers).text
        assert 'laneway_grpc_calls_total{method="Check",status="OK"} 1.0' in page
        assert 'laneway_grpc_call_duration_seconds_count{method="Check"} 1.0' in page
        assert "laneway_grpc_assignments_sent_total 0.0" in page
        process.send_signal(signal.SIGTERM)
        assert process.wait(100) == 0
    assert "Traceback" not in (tmp_path / "stderr").read_text()


def test_missing_packages_are_named_before_anything_is_created(
    run: Run, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("laneway.rpc.server.dispatch_server", "laneway.rpc.server.listener"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "grpc", None)
    answer = run("server", "--port", 0, "--grpc")
    assert answer.exit_code == 2
    assert "pip install 'laneway[grpc]'" in answer.stderr
    assert "log in" not in answer.stdout
    with psycopg.connect(dsn) as conn:
        assert conn.execute("select count(*) from laneway.principals").fetchone() == (0,)


def test_server_waits_for_a_database_that_is_away(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [DatabaseUnavailable("away"), DatabaseUnavailable("away"), SchemaMismatch("too old")]

    def check(*_: object, **__: object) -> None:
        raise answers.pop(0)

    monkeypatch.setattr(start_retry, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr(server, "check", check)
    answer = run("server", "--port", 0)
    assert (answer.exit_code, answers) == (5, [])
    assert "too old" in answer.stderr


def test_remote_workers_of_other_machines_require_certificate(run: Run) -> None:
    answer = run("server", "--port", 0, "--grpc", "--grpc-host", ANYWHERE)
    assert answer.exit_code == 2
    assert "grpc_cert" in answer.stderr
    shown = run("server", "--help").stdout
    for name in ("LANEWAY_GRPC_CERT", "LANEWAY_GRPC_KEY", "loopback"):
        assert name in shown


def test_other_machines_are_not_served_without_principals(run: Run) -> None:
    answer = run("server", "--host", ANYWHERE, "--port", 0, "--behind-tls-proxy")
    assert answer.exit_code == 4
    assert "laneway principals create" in answer.stderr


def test_plain_text_is_not_served_to_other_machines(run: Run) -> None:
    answer = run("server", "--host", ANYWHERE, "--port", 0)
    assert answer.exit_code == 2
    for word in ("--tls-cert", "--tls-key", "--behind-tls-proxy"):
        assert word in answer.stderr


def test_embedded_postgresql_is_not_served_to_other_machines(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("LANEWAY_DATABASE_URL", "DATABASE_URL", "PGHOST", "PGSERVICE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANEWAY_DATA_DIR", str(tmp_path / "pg"))
    for host in (ANYWHERE, "::", "example.invalid"):
        answer = run("server", "--host", host)
        assert answer.exit_code == 2
        assert "embedded PostgreSQL" in answer.stderr
    assert not (tmp_path / "pg").exists()


def test_used_port_is_reported_in_one_line(run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        answer = run("server", "--port", taken.getsockname()[1])
    assert answer.exit_code == 2
    assert len(answer.stderr.splitlines()) == 1
    assert "cannot listen" in answer.stderr
    assert (
        ": the port is in use: use another one with --port N (LANEWAY_SERVER_PORT)" in answer.stderr
    )


def test_help_does_not_load_the_server() -> None:
    code = "import sys, laneway.cli.main; sys.exit('fastapi' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("command", [("worker", "app:lw"), ("worker", "app:lw", "--processes=2")])
def test_worker_without_rights_is_refused_with_the_cure(
    dsn: str, warm_program: WarmProgram, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "app.py").write_text(APP)
    code, output = _end_without_rights(dsn, warm_program, tmp_path, *command)
    assert code == 4, output
    assert "lacks rights that a worker needs: " in output
    assert "laneway db grants --role worker --to pg_monitor" in output


def test_server_without_rights_is_refused_with_the_cure(
    dsn: str, warm_program: WarmProgram, tmp_path: Path
) -> None:
    code, output = _end_without_rights(dsn, warm_program, tmp_path, "server", "--port=0")
    assert code == 4, output
    assert "laneway db grants --role server --to pg_monitor" in output


def _end_without_rights(
    dsn: str, warm_program: WarmProgram, cwd: Path, *command: str
) -> tuple[int, str]:
    """Run a program as a role that may do nothing."""
    powerless = make_conninfo(dsn, options="-c role=pg_monitor")
    env = {**os.environ, "LANEWAY_DATABASE_URL": powerless}
    ended = warm_program.run(*command, env=env, cwd=cwd)
    return ended.returncode, ended.stderr
