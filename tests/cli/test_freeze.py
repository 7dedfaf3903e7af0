"""Laws of `laneway freeze` and `laneway thaw`."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import pytest

from tests.cli.conftest import PROGRAM, Run
from tests.support.job_factory import JobFactory
from tests.support.warm_program import WarmPopen


def enabled(factory: JobFactory) -> set[str]:
    rows = factory.conn.execute("select name from laneway.worker_lanes where enabled").fetchall()
    return {row[0] for row in rows}


def test_quiet_lanes_are_frozen_and_thawed(run: Run, factory: JobFactory) -> None:
    before = enabled(factory)
    run("lanes", "drain", "maintenance")
    frozen = run("--by", "ann", "freeze")
    assert (frozen.exit_code, frozen.stdout) == (0, "")
    assert frozen.stderr.startswith("frozen, no job runs: analysis, default, interactive, system")
    assert enabled(factory) == set()
    thawed = run("thaw", "system")
    assert thawed.stderr == "lane system: enabled\n"
    shown = json.loads(run("thaw", "--json").stdout)
    assert {"lane": "interactive", "was_enabled": True, "enabled": True} in shown["lanes"]
    assert enabled(factory) == before - {"maintenance"}
    assert run("thaw").stderr == "nothing is frozen\n"


def test_jobs_running_at_deadline_are_listed_and_fail(run: Run, factory: JobFactory) -> None:
    claim = factory.running("ingestion")
    late = run("freeze", "interactive", "system", "--deadline", "0")
    assert late.exit_code == 1
    assert str(claim.job_id) in late.stdout
    assert "1 job still running" in late.stderr
    assert "interactive" not in enabled(factory)
    shown = run("freeze", "--deadline", "50ms", "--json")
    assert shown.exit_code == 1
    seen = json.loads(shown.stdout)
    assert (seen["is_quiet"], seen["running"]) == (False, 1)
    by_lane = {each["lane"]: each for each in seen["lanes"]}
    assert by_lane["interactive"]["jobs"][0]["id"] == str(claim.job_id)
    assert by_lane["system"]["running"] == 0
    factory.settle(claim)
    assert run("freeze").exit_code == 0


def test_or_thaw_leaves_the_lanes_as_they_were(run: Run, factory: JobFactory) -> None:
    before = enabled(factory)
    factory.running("ingestion")
    late = run("freeze", "--deadline", "0", "--or-thaw")
    assert late.exit_code == 1
    assert ": thawed" in late.stderr
    assert enabled(factory) == before


def test_or_thaw_names_the_lanes_that_another_freeze_holds(run: Run, factory: JobFactory) -> None:
    factory.running("ingestion")
    assert run("freeze", "interactive", "--deadline", "0").exit_code == 1
    late = run("freeze", "interactive", "--deadline", "0", "--or-thaw")
    assert late.exit_code == 1
    assert ": left frozen by another freeze: interactive (" in late.stderr
    late = run("freeze", "interactive", "system", "--deadline", "0", "--or-thaw")
    assert "the other lanes are thawed; left frozen by another freeze: interactive" in late.stderr
    assert "interactive" not in enabled(factory)
    assert "system" in enabled(factory)


@pytest.mark.parametrize(
    "args,code",
    [
        (["freeze", "missing"], 3),
        (["freeze", "Bad Name"], 2),
        (["freeze", "--deadline", "soon"], 2),
        (["thaw", "system"], 4),
        (["thaw", "Bad Name"], 2),
    ],
)
def test_invalid_value_is_refused_with_its_code(
    run: Run, factory: JobFactory, args: list[str], code: int
) -> None:
    before = enabled(factory)
    refused = run(*args)
    assert (refused.exit_code, refused.stdout) == (code, "")
    assert enabled(factory) == before


@pytest.mark.parametrize(
    "option,output", [([], "drained lanes stay drained"), (["--or-thaw"], "thawed")]
)
def test_interrupted_freeze_prints_state_of_lanes(
    dsn: str, factory: JobFactory, option: list[str], output: str
) -> None:
    before = enabled(factory)
    factory.running("ingestion")
    with WarmPopen(
        [*PROGRAM, "freeze", *option],
        env={**os.environ, "LANEWAY_DATABASE_URL": dsn},
        stderr=subprocess.PIPE,
        text=True,
    ) as waiting:
        try:
            while enabled(factory):
                assert waiting.poll() is None
            waiting.send_signal(signal.SIGINT)
            _, shown = waiting.communicate(timeout=60)
        finally:
            waiting.kill()
    assert waiting.returncode == 130
    assert f"interrupted: {output}" in shown
    assert enabled(factory) == (before if option else set())


def test_lanes_show_who_froze_them(run: Run) -> None:
    run("--by", "ann", "freeze", "system", "--deadline", "0s")
    for command in (["lanes", "ls"], ["admin", "workers"], ["admin", "workers", "lanes"]):
        (line,) = [each for each in run(*command).stdout.splitlines() if "restore" in each]
        assert "frozen by ann" in line
    shown = {
        each["name"]: each
        for each in map(json.loads, run("lanes", "ls", "--json").stdout.splitlines())
    }
    assert (shown["system"]["frozen"], shown["system"]["frozen_by"]) == (True, "ann")
    assert (shown["default"]["frozen"], shown["default"]["frozen_by"]) == (False, None)
    (system,) = [
        each
        for each in json.loads(run("admin", "workers", "--json").stdout)["lanes"]
        if each["name"] == "system"
    ]
    assert system["frozen_by"] == "ann"
