"""Laws that only a real process can keep: streams, signals, exit codes, speed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo

from laneway.cli import main as entry
from laneway.cli.commands import COMMANDS
from laneway.engine.run.attempt_outcomes import error_json
from laneway.store import jobs
from tests.cli.conftest import PROGRAM, Run
from tests.conftest import short_data_dir
from tests.support.job_factory import JobFactory
from tests.support.warm_program import WarmPopen


def start(dsn: str, *args: object, **env: str) -> subprocess.Popen[str]:
    return WarmPopen(
        [*PROGRAM, *(str(arg) for arg in args)],
        env={**os.environ, "LANEWAY_DATABASE_URL": dsn, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_job_goes_from_submit_to_delete(program: Run, factory: JobFactory) -> None:
    made = program("jobs", "submit", "greet", "-", input='{"a": 1}')
    assert made.returncode == 0
    assert "no worker has published greet yet" in made.stderr
    job_id = made.stdout.strip()
    assert program("jobs", "delete", job_id, "--yes").returncode == 4
    assert program("jobs", "cancel", job_id).returncode == 0
    shown = program("jobs", "show", job_id, "--json")
    assert json.loads(shown.stdout)["payload"] == {"a": 1}
    assert program("jobs", "delete", job_id, "--yes").returncode == 0
    assert program("jobs", "show", job_id).returncode == 3


def test_watch_prints_each_change_and_outcome(dsn: str, factory: JobFactory) -> None:
    job_id = factory.submit()
    with start(dsn, "jobs", "watch", job_id, "--interval", "50ms") as watching:
        assert watching.stdout is not None
        assert json.loads(watching.stdout.readline())["status"] == "approved"
        (claim,) = factory.claim()
        assert json.loads(watching.stdout.readline())["status"] == "running"
        factory.settle(claim)
        assert json.loads(watching.stdout.readline())["status"] == "completed"
        out, err = watching.communicate(timeout=100)
    assert (out, err, watching.returncode) == ("", "", 0)


def test_submit_and_wait_prints_the_result(dsn: str, factory: JobFactory) -> None:
    with start(dsn, "jobs", "submit", "greet", "--wait") as waiting:
        assert waiting.stderr is not None
        assert "no worker has published" in waiting.stderr.readline()
        assert "submitted" in waiting.stderr.readline()
        (claim,) = factory.claim()
        factory.settle(claim, result='{"ok": true}')
        out, err = waiting.communicate(timeout=100)
    assert (json.loads(out), waiting.returncode) == ({"ok": True}, 0)
    assert f"job {claim.job_id} completed" in err


def test_submit_and_wait_prints_error_or_canceller(dsn: str, factory: JobFactory) -> None:
    for how in ("failed", "cancelled"):
        with start(dsn, "jobs", "submit", "greet", "--wait") as waiting:
            assert waiting.stderr is not None
            while "submitted" not in waiting.stderr.readline():
                pass
            (claim,) = factory.claim()
            if how == "failed":
                error = error_json("ValueError", "no page 7")
                factory.settle(claim, "giveup", error=error)
            else:
                factory.run(jobs.cancel(claim.job_id, "ann", "wrong file"))
                factory.settle(claim, "cancel")
            out, err = waiting.communicate(timeout=100)
        why = ": ValueError: no page 7" if how == "failed" else " by ann: wrong file"
        assert f"job {claim.job_id} {how}{why}" in err
        assert (out, waiting.returncode) == ("", 1)


def test_interrupt_exits_130_without_a_traceback(dsn: str, factory: JobFactory) -> None:
    with start(dsn, "jobs", "watch", factory.submit()) as watching:
        assert watching.stdout is not None
        watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        _, err = watching.communicate(timeout=100)
    assert (watching.returncode, err) == (130, "")


def test_interrupt_before_a_command_has_begun_exits_130(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(entry, "app", interrupted)
    with pytest.raises(SystemExit) as end:
        entry.main()
    assert end.value.code == 130


def test_applications_with_grpc_load_after_fork_handlers_are_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GRPC_ENABLE_FORK_SUPPORT", "")
    monkeypatch.delenv("GRPC_ENABLE_FORK_SUPPORT")
    found = []
    monkeypatch.setattr(
        entry, "app", lambda **_: found.append(os.environ["GRPC_ENABLE_FORK_SUPPORT"])
    )
    entry.main()
    assert found == ["0"]


def test_unreachable_database_exits_5_at_once_and_hides_the_password(program: Run) -> None:
    dsn = "postgresql://someone:s3cret@127.0.0.1:1/nowhere"
    for command in (["jobs", "ls"], ["db", "status"], ["doctor"]):
        failed = program(*command, LANEWAY_DATABASE_URL=dsn, LANEWAY_DEBUG="")
        assert failed.returncode == 5
        assert "s3cret" not in failed.stdout + failed.stderr
        assert "Traceback" not in failed.stderr
    assert failed.stdout.startswith("✘ database")
    debugged = program("jobs", "ls", LANEWAY_DATABASE_URL=dsn, LANEWAY_DEBUG="1")
    assert "Traceback" in debugged.stderr
    assert "s3cret" not in debugged.stderr


def test_server_that_never_answers_exits_5_within_the_timeout(program: Run) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        failed = program(
            "jobs", "ls", "--json",
            LANEWAY_DATABASE_URL=f"postgresql://u@127.0.0.1:{port}/d",
            LANEWAY_CONNECT_TIMEOUT="2",
        )  # fmt: skip
    assert failed.returncode == 5


@pytest.mark.parametrize(
    "env",
    [
        {"LANEWAY_DATABASE_URL": "host=h password=my s3cret"},
        {"LANEWAY_DATABASE_URL": "mysql://u:s3cret@h/d"},
        {"LANEWAY_POOL_SIZE": "none"},
    ],
)
def test_wrong_setting_exits_2_and_names_it(program: Run, env: dict[str, str]) -> None:
    failed = program("jobs", "ls", **env)
    assert failed.returncode == 2
    assert failed.stderr.startswith("laneway: ")
    assert "s3cret" not in failed.stderr


def test_option_beats_the_variable(program: Run, dsn: str) -> None:
    unreachable = "postgresql://u@127.0.0.1:1/d"
    assert program("--database-url", unreachable, "jobs", "ls").returncode == 5
    chosen = program("--database-url", dsn, "jobs", "ls", LANEWAY_DATABASE_URL=unreachable)
    assert chosen.returncode == 0


def test_reader_that_leaves_costs_no_traceback(dsn: str, factory: JobFactory) -> None:
    with start(dsn, "db", "sql") as printing:
        assert printing.stdout is not None
        printing.stdout.readline()
        printing.stdout.close()
        assert printing.stderr is not None
        assert printing.stderr.read() == ""
    assert printing.returncode in (0, 1)


def test_no_colour_where_no_terminal_is(program: Run) -> None:
    assert "\x1b" not in program("lanes", "ls").stdout
    assert "\x1b" not in program("lanes", "ls", FORCE_COLOR="1", NO_COLOR="1").stdout


def test_embedded_database_is_used_by_default_and_named() -> None:
    with short_data_dir() as directory:
        clean = {
            name: value
            for name, value in os.environ.items()
            if name not in ("DATABASE_URL", "LANEWAY_DATABASE_URL") and not name.startswith("PG")
        }
        used = subprocess.run(
            [*PROGRAM, "jobs", "submit", "greet"],
            env={**clean, "LANEWAY_DATA_DIR": str(directory)},
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )
    assert used.returncode == 0, used.stderr
    assert "embedded PostgreSQL" in used.stderr
    assert re.fullmatch(r"[0-9a-f-]{36}\n", used.stdout)


def test_worker_runs_submitted_jobs_and_stops_on_sigterm(
    dsn: str, program: Run, tmp_path: Path
) -> None:
    (tmp_path / "sample_app.py").write_text(
        "from laneway import Laneway\n"
        "lw = Laneway()\n"
        "@lw.handler('greet')\n"
        "async def greet(ctx, name: str) -> str:\n"
        "    return f'hello {name}'\n"
    )
    path = os.pathsep.join([str(tmp_path), *sys.path])
    with WarmPopen(
        [*PROGRAM, "worker", "sample_app:lw", "--concurrency", "2", "--grace", "5s"],
        env={**os.environ, "LANEWAY_DATABASE_URL": dsn, "PYTHONPATH": path},
        stderr=subprocess.PIPE,
        text=True,
    ) as worker:
        try:
            done = program("jobs", "submit", "greet", "--arg", "name=ann", "--wait")
            assert (done.returncode, json.loads(done.stdout)) == (0, "hello ann")
            assert program("jobs", "submit", "greet").returncode == 2
        finally:
            worker.terminate()
            _, err = worker.communicate(timeout=30)
    assert worker.returncode == 0, err


TALKING = """
import logging
from laneway import Laneway

lw = Laneway()
log = logging.getLogger(__name__)


@lw.handler("greet", max_retries=0)
async def greet(ctx, name: str) -> str:
    log.debug("greeting %s", name)
    if name == "bob":
        raise LookupError("no bob")
    return f"hello {name}"
"""


def output_of_worker(dsn: str, program: Run, folder: Path, *options: str) -> str:
    """The output of a worker that completes a job and fails another."""
    (folder / "talking_app.py").write_text(TALKING)
    path = os.pathsep.join([str(folder), *sys.path])
    with WarmPopen(
        [*PROGRAM, "worker", "talking_app", "--name", "w", *options],
        env={**os.environ, "LANEWAY_DATABASE_URL": dsn, "PYTHONPATH": path},
        stderr=subprocess.PIPE,
        text=True,
    ) as worker:
        try:
            assert program("jobs", "submit", "greet", "--arg", "name=ann", "--wait").returncode == 0
            assert program("jobs", "submit", "greet", "--arg", "name=bob", "--wait").returncode == 1
        finally:
            worker.terminate()
            _, err = worker.communicate(timeout=30)
    assert worker.returncode == 0, err
    return err


def test_worker_logs_start_jobs_and_failures(dsn: str, program: Run, tmp_path: Path) -> None:
    err = output_of_worker(dsn, program, tmp_path)
    assert re.search(r"INFO worker w serves default: laneway \d.* database postgres", err)
    assert "INFO   greet  default  unbounded  the default: no lane lists it; " in err
    assert re.search(r"INFO greet [0-9a-f-]{36}: attempt 1 completed in ", err)
    assert re.search(r"ERROR greet .* LookupError: no bob; the job has failed\n    Traceback", err)
    assert re.search(r'^      File ".*talking_app.py", line 13, in greet$', err, re.MULTILINE)
    assert "executor.py" not in err
    assert "attempt 1 started" not in err
    assert "greeting ann" not in err


def test_level_option_also_sets_loggers_of_the_application(
    dsn: str, program: Run, tmp_path: Path
) -> None:
    err = output_of_worker(dsn, program, tmp_path, "--log-level", "debug")
    assert re.search(r"DEBUG greet [0-9a-f-]{36}: attempt 1 started", err)
    assert "DEBUG greeting ann" in err


def test_quiet_worker_logs_start_and_failures_only(dsn: str, program: Run, tmp_path: Path) -> None:
    err = output_of_worker(dsn, program, tmp_path, "--quiet", "--processes", "2")
    assert {"worker w-1 serves default", "worker w-2 serves default"} <= set(
        re.findall(r"worker \S+ serves default", err)
    )
    # One of the processes lists the job types for all.
    assert err.count("greet  default  unbounded  the default: ") == 1
    assert "completed in" not in err
    assert "LookupError: no bob" in err


def test_missing_database_exits_5_after_five_tries(dsn: str, tmp_path: Path) -> None:
    (tmp_path / "talking_app.py").write_text(TALKING)
    nowhere = make_conninfo(dsn, dbname="nowhere")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    # At the same time: most of it is the wait between two tries.
    all_started = [
        start(nowhere, *command, LANEWAY_SERVER_PORT="0", PYTHONPATH=path)
        for command in (
            ["worker", "talking_app"],
            ["worker", "talking_app", "--processes", "2"],
            ["server"],
            ["up", "talking_app"],
        )
    ]
    for started in all_started:
        with started:
            _, err = started.communicate(timeout=100)
        assert started.returncode == 5, err
        assert "(try 4 of 5)" in err
        assert re.search('^laneway: .*database "nowhere" does not exist', err, re.MULTILINE)


def test_wrong_level_suggests_the_right_one(program: Run) -> None:
    wrong = program("worker", "app:lw", "--log-level", "infos")
    assert wrong.returncode == 2
    assert "did you mean INFO?" in wrong.stderr


def test_worker_of_an_app_that_is_not_there_exits_2(program: Run) -> None:
    missing = program("worker", "no_such_module:lw")
    assert missing.returncode == 2
    assert "no_such_module" in missing.stderr


def test_usage_errors_exit_2_and_help_is_data(program: Run) -> None:
    assert program("nonsense").returncode == 2
    asked = program("--help")
    assert (asked.returncode, asked.stderr) == (0, "")
    assert all(re.search(rf"^  {name} ", asked.stdout, re.MULTILINE) for name in COMMANDS)
    assert program("--version").stdout.startswith("laneway ")


@pytest.mark.parametrize("command", [["--help"], ["jobs", "--help"], ["db", "grants", "--help"]])
def test_help_imports_nothing_heavy(command: list[str]) -> None:
    listed = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "laneway", *command],
        capture_output=True,
        text=True,
        check=True,
    ).stderr
    loaded = {line.rpartition("|")[2].strip() for line in listed.splitlines()}
    heavy = {
        "pydantic",
        "psycopg",
        "rich.console",
        "asyncio",
        "laneway.app.laneway",
        "laneway.config.settings",
    }
    assert loaded & heavy == set()


@pytest.mark.parametrize(
    "name, value, shown",
    [
        ("LANEWAY_CONCURENCY", "5", "; did you mean LANEWAY_CONCURRENCY?"),
        ("LANEWAY_JOBS_LS_LIMITS", "5", "; did you mean LANEWAY_JOBS_LS_LIMIT?"),
        ("LANEWAY_ZZZZZZZZ", "1", ""),
    ],
)
def test_unknown_variable_is_reported_once_with_the_nearest(
    program: Run, name: str, value: str, shown: str
) -> None:
    listed = program("lanes", "ls", **{name: value})
    assert listed.returncode == 0
    assert listed.stderr == f"{name} is ignored: it is not a variable of Laneway{shown}\n"


def test_known_variables_and_service_links_are_not_reported(program: Run) -> None:
    known = {
        "LANEWAY_JOBS_LS_LIMIT": "5",
        "laneway_concurrency": "5",
        "LANEWAY_WORKER_NAME": "x",
        "LANEWAY_ADMIN_FAILURES_WINDOW": "60",
        "LANEWAY_DATABASE_URL_FILE": "/dev/null",
        "LANEWAY_UI_SERVICE_HOST": "10.0.0.1",
        "LANEWAY_UI_PORT_8420_TCP": "tcp://10.0.0.1:8420",
        "LANEWAY_UI_PORT": "tcp://10.0.0.1:8420",
        "LANEWAY_SERVER_PORT": "tcp://10.0.0.1:80",
        "LANEWAY_CONCURENCY": "",
    }
    assert program("lanes", "ls", **known).stderr == ""


def test_service_link_is_not_the_default_of_an_option(program: Run, empty_dsn: str) -> None:
    """Kubernetes sets it for a service `laneway-server`, such as that of a release `laneway`."""
    link = {"LANEWAY_SERVER_PORT": "tcp://10.0.0.1:80", "LANEWAY_DATABASE_URL": empty_dsn}
    refused = program("server", **link)
    assert (refused.returncode, "laneway db migrate" in refused.stderr) == (5, True)


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_closed_pipe_ends_a_listing_without_a_message(
    dsn: str, factory: JobFactory, more: tuple[str, ...]
) -> None:
    factory.submit()
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(
        [*PROGRAM, "jobs", "ls", *more],
        env={**os.environ, "LANEWAY_DATABASE_URL": dsn},
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_error_that_ends_a_worker_is_a_json_line_where_logs_are(program: Run) -> None:
    ended = program("worker", "nowhere:lw", "--log-format", "json")
    logged = json.loads(ended.stderr.splitlines()[-1])
    assert (logged["level"], logged["exit_code"]) == ("critical", ended.returncode)
    assert "nowhere" in logged["message"]
    plain = program("jobs", "show", "0199", LANEWAY_LOG_FORMAT="json")
    assert plain.stderr.startswith("laneway: ")
