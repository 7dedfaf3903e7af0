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
from pathlib import Path
from typing import Any

import psutil
import pytest

import laneway
from tests.conftest import short_data_dir

SOURCE = Path(laneway.__file__).resolve().parents[1]
# Far more than needed, also on a busy machine.
PATIENCE_S = 100.0
GONE_S = 60.0


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

    def until(self, words: str) -> None:
        """Wait for a line with these words."""
        seen = []
        for line in self.process.stdout:
            seen.append(line)
            if words in line:
                return
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


def test_two_demos_at_once_both_complete_and_print_figures(place: Path, tmp_path: Path) -> None:
    """As root, the other demo runs as an ordinary user."""
    (tmp_path / "bench").mkdir()
    first = Demo(place, "--once", cwd=tmp_path)
    second = Demo(place, "--once", cwd=place, **_ordinary())
    printed = assert_shown(*first.end())
    assert_shown(*second.end())
    kept = json.loads((tmp_path / "bench" / "latest" / "demo.json").read_text())
    assert kept == printed
    assert list(place.iterdir()) == []


def test_killed_demo_ends_its_processes_and_the_next_one_cleans_up(place: Path) -> None:
    killed = Demo(place)
    killed.until("attempt 1 of sync_calendar failed")
    started = killed.processes()
    assert len(started) > 5
    killed.process.kill()
    killed.process.communicate()
    _, alive = psutil.wait_procs(started, timeout=GONE_S)
    assert [each for each in alive if _lives(each)] == []

    following = Demo(place)
    following.until("10 documents")
    following.process.send_signal(signal.SIGINT)
    code, output = following.end()
    assert code == 0, output
    assert list(place.iterdir()) == []


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
