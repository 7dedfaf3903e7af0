"""Laws of `laneway lanes`, `pause`, `resume`, `admin workers`, `top`."""

from __future__ import annotations

import json
from uuid import UUID

import pytest

from laneway.cli.backends.database import DatabaseBackend
from laneway.domain.retention import Retention
from laneway.errors import DatabaseUnavailable
from tests.cli.conftest import Run
from tests.support.job_factory import JobFactory


def test_lanes_are_listed_created_set_drained_resumed_and_moved(
    run: Run, factory: JobFactory
) -> None:
    made = run(
        "--by", "ann", "lanes", "create", "video", "--max-slots", "unbounded",
        "--poll-interval-ms", 500, "--job-types", "encode, cut", "--json",
    )  # fmt: skip
    lane = json.loads(made.stdout)
    assert (lane["max_slots"], lane["job_types"]) == (None, ["encode", "cut"])
    assert lane["updated_by"] == "ann"
    assert run("lanes", "create", "video").exit_code == 4
    changed = run("lanes", "set", "video", "--max-slots", 3, "--lease-seconds", 60)
    assert changed.stderr == "lane video: max_slots unbounded → 3, lease_seconds 30 → 60\n"
    again = run("lanes", "set", "video", "--max-slots", 3)
    assert (again.exit_code, again.stderr) == (0, "lane video: unchanged\n")
    assert run("lanes", "drain", "video").exit_code == 0
    assert run("lanes", "move", "ingestion", "video").exit_code == 0
    listed = {
        each["name"]: each
        for each in map(json.loads, run("lanes", "ls", "--json").stdout.splitlines())
    }
    assert listed["video"]["enabled"] is False
    assert listed["video"]["max_slots"] == 3
    assert listed["video"]["job_types"] == ["encode", "cut", "ingestion"]
    assert "drained" in run("lanes", "ls").stdout
    assert run("lanes", "resume", "video").exit_code == 0
    assert "drained" not in run("admin", "workers", "lanes").stdout


@pytest.mark.parametrize(
    "args,code",
    [
        (["set", "missing", "--max-slots", "1"], 3),
        (["drain", "missing"], 3),
        (["move", "greet", "missing"], 3),
        (["set", "system"], 2),
        (["set", "system", "--max-slots", "many"], 2),
        (["set", "system", "--max-slots", "10001"], 2),
        (["set", "system", "--lease-seconds", "1"], 2),
        (["set", "system", "--job-types", "ingestion"], 2),
        (["set", "default", "--job-types", "greet"], 2),
        (["create", "Bad Name"], 2),
        (["drain", "x; drop table laneway.jobs"], 2),
    ],
)
def test_invalid_value_is_refused_with_its_code(run: Run, args: list[str], code: int) -> None:
    refused = run("lanes", *args)
    assert (refused.exit_code, refused.stdout) == (code, "")
    assert len(refused.stderr) > 10


def test_setting_a_lane_is_one_operation(
    run: Run, factory: JobFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The response includes the change; the history is not read."""

    async def lost(*given: object, **more: object) -> None:
        raise DatabaseUnavailable("gone")

    monkeypatch.setattr(DatabaseBackend, "history", lost)
    monkeypatch.setattr(DatabaseBackend, "page", lost)
    done = run("lanes", "set", "system", "--max-slots", 3)
    assert (done.exit_code, done.stderr) == (0, "lane system: max_slots 1 → 3\n")
    again = run("lanes", "set", "system", "--max-slots", 3)
    assert (again.exit_code, again.stderr) == (0, "lane system: unchanged\n")


@pytest.mark.parametrize(
    "command, shown",
    [
        (["workers", "types"], "no worker has published a job type of the lane {}\n"),
        (["failures"], "no matching job failed in this time\n"),
    ],
)
def test_empty_result_names_its_filter(
    run: Run, factory: JobFactory, command: list[str], shown: str
) -> None:
    factory.publish("ingestion")
    factory.failed("ingestion")
    typo = run("admin", *command, "--lane", "typo")
    output, _, rest = typo.stderr.partition("\n")
    assert output.startswith("no lane typo; existing: ")
    assert output.endswith("; to create it: `laneway lanes create typo`")
    assert rest == shown.format("typo")
    assert run("admin", *command, "--lane", "system").stderr == shown.format("system")


def test_move_of_an_unpublished_type_is_noted(run: Run, factory: JobFactory) -> None:
    factory.publish("encode")
    moved = run("lanes", "move", "encod", "system")
    assert moved.exit_code == 0
    assert "no worker has published encod yet; did you mean encode?" in moved.stderr
    assert "published" not in run("lanes", "move", "encode", "system").stderr


def test_pause_and_resume_move_the_gate(run: Run, factory: JobFactory) -> None:
    factory.submit()
    assert run("--by", "ann", "pause").exit_code == 0
    assert factory.claim() == []
    assert run("admin", "workers").stdout.startswith("PAUSED by ann")
    assert "PAUSED by ann" in run("top", "--once").stdout
    assert run("lanes", "ls").stdout.startswith("PAUSED by ann")
    assert run("resume").exit_code == 0
    assert len(factory.claim()) == 1


@pytest.mark.parametrize("command", [["admin", "workers"], ["top"], ["top", "--once"]])
def test_overview_shows_lanes_jobs_and_workers(
    run: Run, factory: JobFactory, command: list[str]
) -> None:
    factory.register()
    claim = factory.running("ingestion")
    text = run(*command).stdout
    assert str(claim.job_id) in text
    assert "host:1" in text
    assert "1/2" in text
    shown = json.loads(run(*command, "--json").stdout)
    assert [each["id"] for each in shown["active"]] == [str(claim.job_id)]
    assert len(shown["lanes"]) == 5


def test_overview_marks_a_dead_worker(run: Run, factory: JobFactory) -> None:
    factory.register()
    assert "dead" not in run("admin", "workers").stdout
    factory.conn.execute("update laneway.workers set seen_at = seen_at - interval '95 seconds'")
    text = run("admin", "workers").stdout
    assert "no live workers" in text
    assert "dead" in text
    shown = json.loads(run("admin", "workers", "--json").stdout)
    assert (shown["workers"], [each["state"] for each in shown["silent"]]) == ([], ["dead"])


def test_one_worker_is_drained_and_resumed_by_its_name_or_id(run: Run, factory: JobFactory) -> None:
    factory.register()
    factory.running("greet")
    drained = run("--by", "ann", "admin", "workers", "drain", "host:1")
    assert (drained.exit_code, drained.stderr) == (0, "worker host:1: drained, 1 running\n")
    assert "drained by ann" in run("admin", "workers").stdout
    resumed = run("admin", "workers", "resume", factory.worker_id, "--json")
    assert json.loads(resumed.stdout)["drain_requested_at"] is None
    assert "drained" not in run("admin", "workers").stdout

    assert run("admin", "workers", "drain", "host:2").exit_code == 3
    assert run("admin", "workers", "drain", UUID(int=7)).exit_code == 3
    factory.worker_id = UUID(int=8)
    factory.register()
    both = run("admin", "workers", "drain", "host:1")
    assert both.exit_code == 4
    assert str(UUID(int=8)) in both.stderr
    factory.conn.execute("update laneway.workers set stopped_at = seen_at")
    assert run("admin", "workers", "drain", UUID(int=8)).exit_code == 4


def test_overview_shows_memory_and_transport_of_workers(run: Run, factory: JobFactory) -> None:
    factory.register()
    assert "database" in run("admin", "workers").stdout
    factory.conn.execute("update laneway.workers set memory_bytes = 61500000, transport = 'grpc'")
    text = run("admin", "workers").stdout
    assert "62 MB" in text
    assert "grpc" in text


def test_options_can_be_set_by_environment(run: Run, factory: JobFactory) -> None:
    for _ in range(3):
        factory.submit()
    listed = run("jobs", "ls", env={"LANEWAY_JOBS_LS_LIMIT": "2", "LANEWAY_JOBS_LS_JSON": "1"})
    assert len(listed.stdout.splitlines()) == 2


@pytest.mark.parametrize(
    "retention, text",
    [
        (Retention(), " 7d, failed 30d "),
        (Retention(completed=None, cancelled=None, failed=None), " forever "),
        (Retention(completed=3600, failed=60, count=1000),
         " 1h00m, cancelled 7d, failed 1m00s, at most 1,000 "),
    ],
)  # fmt: skip
def test_types_show_how_long_their_jobs_are_kept(
    run: Run, factory: JobFactory, retention: Retention, text: str
) -> None:
    factory.publish("greet", retention=retention)
    assert text in run("admin", "workers", "types").stdout
