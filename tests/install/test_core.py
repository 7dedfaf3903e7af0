"""`pip install laneway` is the core: it submits and works; a missing extra is named when needed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from scripts.core_install import core_names, size_of
from tests.install.conftest import Core

CORE_MB, CORE_PACKAGES = 60, 26
# What no start needs before it has something to do.
LATE = (
    "psycopg",
    "pydantic",
    "rich",
    "typer",
    "laneway.config.settings",
    "laneway.domain.overview",
)
RUN_COMMANDS = """
import contextlib, io, json, sys
from laneway.cli.main import main

results = []
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["laneway", *arguments]
    code, out, err = 0, io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as ending:
            code = ending.code or 0
    results.append({"code": code, "stdout": out.getvalue(), "stderr": err.getvalue()})
print(json.dumps(results))
"""
LATE_IN_HELP = ("psycopg", "rich", "pydantic", "asyncio", "laneway.domain.job", "laneway.cli.jobs")


def imported(core: Core, program: str) -> set[str]:
    """The modules that a program imports."""
    ran = core.python(
        "-c", f"import sys\ntry: exec({program!r})\nfinally: print(*sys.modules, file=sys.stderr)"
    )
    assert ran.returncode == 0, ran.stderr
    return set(ran.stderr.split())


def run_commands(core: Core, commands: list[list[str]]) -> list[dict[str, Any]]:
    """Run commands one after the other in one process; return `code`, `stdout` and `stderr`."""
    ran = core.python("-c", RUN_COMMANDS, json.dumps(commands))
    assert ran.returncode == 0, ran.stderr
    results: list[dict[str, Any]] = json.loads(ran.stdout)
    return results


def test_core_is_small(core: Core) -> None:
    assert size_of(core.site) / 1e6 <= CORE_MB
    assert len(list(core.site.glob("*.dist-info"))) <= CORE_PACKAGES
    assert len(core_names()) < CORE_PACKAGES


def test_import_of_an_application_defers_driver_and_settings(core: Core) -> None:
    found = imported(core, "from laneway import Laneway, Context")
    assert "laneway.app.laneway" in found
    assert found.isdisjoint(LATE)


def test_help_imports_no_command(core: Core) -> None:
    found = imported(core, "sys.argv[1:] = ['--help']; from laneway.cli.main import main; main()")
    assert "laneway.cli.main" in found
    assert found.isdisjoint(LATE_IN_HELP)


def test_heartbeat_process_of_a_worker_stays_light(core: Core) -> None:
    found = imported(core, "import laneway.engine.lease.heartbeat_child")
    assert found.isdisjoint({"asyncio", "pydantic", "laneway.domain.job", "laneway.config"})


def test_core_submits_and_works(core: Core, dsn: str) -> None:
    env = {"LANEWAY_DATABASE_URL": dsn}
    submitted = core.laneway("jobs", "submit", "add", '{"a": 1, "b": 2}', "--json", **env)
    assert submitted.returncode == 0, submitted.stderr
    worked = core.laneway("worker", "app:lw", "--max-jobs", "1", "--metrics-port", "0", **env)
    assert worked.returncode == 0, worked.stderr
    shown = core.laneway("jobs", "show", json.loads(submitted.stdout)["id"], "--json", **env)
    job = json.loads(shown.stdout)
    assert (job["status"], job["result"]) == ("completed", 3)


MISSED_BY_COMMANDS = (
    ("embedded", ["jobs", "ls"]),
    ("embedded", ["db", "status"]),
    ("embedded", ["worker", "app:lw"]),
    ("embedded", ["demo", "--once"]),
    ("server", ["server"]),
    ("server", ["server", "--grpc"]),
    ("server", ["up", "app:lw"]),
    ("http", ["--server", "http://127.0.0.1:9", "--token", "t", "jobs", "ls"]),
    ("grpc", ["remote-worker", "app:lw", "--server", "127.0.0.1:9", "--token", "t"]),
    ("mcp", ["mcp"]),
)
MISSED_BY_PROGRAMS = (
    ("embedded", "from app import lw; lw.sync.submit('add', {'a': 1, 'b': 2})"),
    ("server", "from app import lw; lw.asgi()"),
    ("server", "import laneway.integrations.fastapi"),
    ("http", "from laneway.http import Client"),
    ("grpc", "from laneway.app.remote_worker import make_endpoint; make_endpoint('h:1')"),
    ("sentry", "import laneway.integrations.sentry"),
)


def test_command_names_the_extra_it_misses(core: Core) -> None:
    for (extra, command), ran in zip(
        MISSED_BY_COMMANDS, run_commands(core, [one for _, one in MISSED_BY_COMMANDS]), strict=True
    ):
        assert (ran["code"], "Traceback" in ran["stderr"]) == (2, False), (command, ran)
        assert f"pip install 'laneway[{extra}]'" in ran["stderr"], (command, ran)


def test_program_gets_an_error_with_the_extra_it_misses(core: Core) -> None:
    caught = [
        f"try: exec({program!r})\nexcept ImportError as error: print(type(error), error)\n"
        "else: print('no error')\n"
        for _, program in MISSED_BY_PROGRAMS
    ]
    ran = core.python("-c", "".join(caught))
    assert ran.returncode == 0, ran.stderr
    for (extra, program), line in zip(MISSED_BY_PROGRAMS, ran.stdout.splitlines(), strict=True):
        assert "laneway.errors.MissingExtra" in line, (program, line)
        assert f"pip install 'laneway[{extra}]'" in line, (program, line)


def test_deploy_files_are_in_the_installation(core: Core) -> None:
    root = Path(__file__).resolve().parents[2] / "deploy"
    files = sorted(path for path in root.rglob("*") if path.is_file())
    names = [path.relative_to(root).as_posix() for path in files]
    wanted = [*names, "nagios.cfg"]
    listed, *shown, unknown = run_commands(
        core, [["deploy", "ls"], *(["deploy", "show", name] for name in wanted)]
    )
    assert listed["stdout"].splitlines() == names
    for path, one in zip(files, shown, strict=True):
        assert one["stdout"].strip() == path.read_text().strip()
    assert (unknown["code"], "laneway deploy ls" in unknown["stderr"]) == (3, True)
