"""`laneway demo` works for every account, every time, and cleans up."""

from __future__ import annotations

import json
import os
import pwd
import re
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import httpx2
import psutil
import pytest

import laneway
from laneway.demo.history import make_rows
from tests.conftest import short_data_dir

SOURCE = Path(laneway.__file__).resolve().parents[1]
# Far more than needed, also on a busy machine.
PATIENCE_S = 100.0
GONE_S = 60.0
# Jobs of the demo wait for each of these.
REASONS = {"slots_full", "limit", "key", "delayed"}


@pytest.fixture
def place() -> Iterator[Path]:
    """A temporary directory for every account."""
    with short_data_dir() as path:
        path.mkdir()
        path.chmod(0o1777)
        yield path


class Demo:
    """One run of the demo as a process."""

    def __init__(self, place: Path, *arguments: str, python: str = sys.executable, **popen: object):
        environment = {
            **os.environ,
            "TMPDIR": str(place),
            # The demo must ignore all of these.
            "DATABASE_URL": "postgresql://user@nowhere.invalid/nothing",
            "LANEWAY_POOLER": "true",
            "LANEWAY_MAX_PAYLOAD_BYTES": "1",
            **({"PYTHONPATH": _import_path()} if python != sys.executable else {}),
        }
        self.process = subprocess.Popen(
            [python, "-m", "laneway", "demo", *arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **popen,  # type: ignore[call-overload]
        )
        self._place = place

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Kill a demo that a failed test left running; its processes end with it."""
        self.process.kill()
        self.process.communicate()

    def until(self, words: str) -> list[str]:
        """Wait for a line with these words; return the lines up to it."""
        seen = []
        for line in self.process.stdout:
            seen.append(line)
            if words in line:
                return seen
        pytest.fail(f"never printed {words!r}:\n{''.join(seen)}")

    def end(self) -> tuple[int, str]:
        output, _ = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, output

    def processes(self) -> set[psutil.Process]:
        """All processes of the demo, and its server, which is not a child process."""
        mine = {*psutil.Process(self.process.pid).children(recursive=True)}
        return mine | {each for each in psutil.process_iter() if _names(each, self._place)}


def _names(process: psutil.Process, place: Path) -> bool:
    try:
        return str(place) in " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def figures(output: str) -> dict[str, float]:
    """The figures of the last line."""
    last = output.strip().splitlines()[-1]
    return {name: float(value) for name, value in re.findall(r"(\w+)=([\d.]+)", last)}


def assert_shown(code: int, output: str) -> dict[str, float]:
    found = figures(output)
    assert code == 0, output
    assert found["retried"] >= 1, output
    assert found["resumed_after_kill"] == 1, output
    assert found["failed"] == 0, output
    assert found["completed"] + found["cancelled"] == found["jobs"] > 40, output
    started = re.search(r"attempt (\d+) of restore started with table (\d+) of 100", output)
    killed = re.search(r"kill -9 worker \w+, with restore at (\d+)/100", output)
    assert started is not None, output
    assert killed is not None, output
    assert int(started[2]) > int(killed[1]) > 0, output
    assert "\x1b" not in output
    return found


def test_demos_after_a_killed_one_clean_up_and_print_figures(place: Path, tmp_path: Path) -> None:
    """Two of them at once; as root, the second runs as an ordinary user."""
    kill_a_demo(place)
    (tmp_path / "bench").mkdir()
    first = Demo(place, "--once", cwd=tmp_path)
    second = Demo(place, "--once", cwd=place, **_ordinary())
    printed = assert_shown(*first.end())
    assert_shown(*second.end())
    kept = json.loads((tmp_path / "bench" / "latest" / "demo.json").read_text())
    assert kept == printed
    assert list(place.iterdir()) == []


def kill_a_demo(place: Path) -> None:
    """Kill a demo at work: its processes end, its directory is left behind."""
    killed = Demo(place)
    killed.until("attempt 1 of sync_calendar failed")
    started = killed.processes()
    assert len(started) > 5
    killed.process.kill()
    killed.process.communicate()
    _, alive = psutil.wait_procs(started, timeout=GONE_S)
    assert [each for each in alive if _lives(each)] == []
    assert list(place.iterdir()) != []


def test_demo_prints_its_link_first_and_fills_every_screen(place: Path) -> None:
    with Demo(place, "--port", "0", "--seed", "7", "--no-open") as demo:
        head = demo.until("login?link=")
        assert len(head) == 2, head
        url, link = re.findall(r"(http://\S+)/login\?link=(\S+)", head[-1])[0]
        shown = "".join(demo.until("ready\n"))
        assert link not in shown
        assert "missing" not in shown
        with httpx2.Client(base_url=url, timeout=60) as browser:
            assert browser.post("/login", data={"link": link}).status_code == 303
            assert_screens_are_full(browser)
        started = demo.processes()
        demo.process.send_signal(signal.SIGINT)
        code, output = demo.end()
    assert code == 0, output
    assert "Traceback" not in output
    _, alive = psutil.wait_procs(started, timeout=GONE_S)
    assert [each for each in alive if _lives(each)] == []
    assert list(place.iterdir()) == []


def test_demo_interrupted_while_it_starts_cleans_up(place: Path) -> None:
    with Demo(place, "--port", "0", "--no-open") as demo:
        demo.until("login?link=")
        started = demo.processes()
        demo.process.send_signal(signal.SIGINT)
        code, output = demo.end()
    assert code == 0, output
    assert "Traceback" not in output
    _, alive = psutil.wait_procs(started, timeout=GONE_S)
    assert [each for each in alive if _lives(each)] == []
    assert list(place.iterdir()) == []


def assert_screens_are_full(browser: httpx2.Client) -> None:
    def get(path: str, **params: str | int) -> Any:
        response = browser.get(path, params=params)
        assert response.status_code == 200, response.text
        return response.json()

    status = get("/admin/workers/status")
    assert {each["transport"] for each in status["workers"]} == {"database", "in_process", "grpc"}
    lanes = {each["name"]: each for each in get("/admin/workers/lanes")["items"]}
    full = lanes["embeddings"]
    # One may have ended a moment ago.
    assert full["max_slots"] - 1 <= full["slots_used"] <= full["max_slots"] == 4
    assert full["depth"] > 0
    assert any(job["progress"] for job in status["active"])
    assert get("/admin/workers/lanes/interactive/history")["items"]

    gated = get("/jobs", status="awaiting_approval")["items"]
    assert len(gated) >= 5
    assert {job["created_by"] for job in gated} >= {"admin", "omar"}
    assert all(job["analysis"]["plan"] for job in gated)
    assert get("/jobs", job_type="rebuild_index", status="completed")["items"]

    failures = get("/admin/stats/failures", window_s=1800)["items"]
    assert len({each["error_type"] for each in failures}) >= 4
    failed = get("/jobs", job_type="sync_feed", status="failed", limit=1)["items"][0]
    shown = get(f"/jobs/{failed['id']}")
    assert "laneway/demo/documents.py" in shown["error"]["traceback"]
    assert [each["outcome"] for each in shown["attempts"]] == ["failed"] * 3
    catalog = get("/jobs", job_type="import_catalog", limit=1)["items"][0]
    shown = get(f"/jobs/{catalog['id']}")
    assert {step["name"] for step in shown["steps"]} >= {"download", "validate"}
    assert shown["payload"]["records"][0]["id"] > 2**53

    reasons = {
        reason["code"]
        for job_type in ("embed_chunks", "summarize", "export_customer", "weekly_report")
        for job in get("/jobs", job_type=job_type, status="approved")["items"]
        for reason in get(f"/jobs/{job['id']}/explain")["reasons"]
    }
    assert reasons >= REASONS

    points = get("/admin/stats", window_s=1800, bucket_s=60)["points"]
    assert len({point["at"] for point in points}) > 25
    schedules = {each["name"]: each for each in get("/admin/schedules")["items"]}
    assert not schedules["restore-test"]["enabled"]
    assert len(get("/admin/schedules/nightly-projection/slots")["items"]) >= 10
    limits = {each["name"]: each for each in get("/admin/limits")["items"]}
    assert limits["openai"]["running"] > 0
    assert {each["door"] for each in get("/admin/audit", limit=200)["items"]} >= {
        "ui", "cli", "http", "mcp", "python"
    }  # fmt: skip
    assert {each["principal"] for each in get("/admin/tokens")["items"]} >= {"maya", "gpu-pool"}
    samples = get("/jobs", tag="sample", limit=200)["items"]
    assert len(samples) == 200
    assert all(job["tags"][0] == "sample" for job in samples)


def test_sample_history_is_the_same_for_a_seed_and_ended_in_the_past() -> None:
    now = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
    rows = make_rows(3, now)
    assert rows == make_rows(3, now)
    assert rows != make_rows(4, now)
    assert all(row["ago"] >= row["waited"] + row["ran"] for row in rows)
    assert all("sample" in row["tags"] for row in rows)
    assert {row["status"] for row in rows} == {"completed", "failed", "cancelled"}
    assert all((row["error"] is not None) == (row["status"] == "failed") for row in rows)


def _ordinary() -> dict[str, Any]:
    """Popen arguments for an ordinary user."""
    if os.geteuid() != 0:
        return {}
    account = pwd.getpwnam("nobody")
    become = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    return {"python": _python_for(become), **become}


def _import_path() -> str:
    return os.pathsep.join([str(SOURCE), sysconfig.get_path("purelib")])


def _python_for(become: dict[str, object]) -> str:
    """An equal interpreter that the account may run; ours may be in a closed home directory."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    for python in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        try:
            ran = subprocess.run(
                [python, "-c", "import laneway, psycopg, pydantic, rich"],
                env={**os.environ, "PYTHONPATH": _import_path()},
                capture_output=True,
                cwd="/",
                **become,  # type: ignore[call-overload]
            )
        except OSError:
            continue
        if ran.returncode == 0:
            return python
    pytest.skip("no interpreter that another account may run")
