"""Laws of `laneway schedules`."""

from __future__ import annotations

import json
import re

import pytest

from tests.cli.conftest import Run
from tests.support.job_factory import JobFactory

SET = ("schedules", "set", "nightly", "--type", "greet", "--cron", "0 3 * * *")


def test_schedule_is_set_listed_shown_changed_and_deleted(run: Run) -> None:
    made = run(
        "--by", "ann", *SET, "--timezone", "Europe/Berlin", "--payload", '{"name": "ada"}',
        "--missed", "catch_up", "--catch-up", 3, "--check", "is_full", "--priority", 5,
        "--max-retries", 1, "--concurrency-key", "k", "--workspace", "w", "--tag", "a",
        "--tag", "b", "--json",
    )  # fmt: skip
    schedule = json.loads(made.stdout)
    assert schedule["payload"] == {"name": "ada"}
    assert (schedule["missed"], schedule["catch_up"]) == ("catch_up", 3)
    assert (schedule["check_name"], schedule["concurrency_key"]) == ("is_full", "k")
    assert (schedule["tags"], schedule["updated_by"]) == (["a", "b"], "ann")
    assert schedule["next_at"]
    changed = run("schedules", "set", "nightly", "--check", "none", "--concurrency-key", "none")
    assert changed.stderr.startswith("schedule nightly: set check_name, concurrency_key, next at ")
    listed = run("schedules", "ls").stdout
    assert "Europe/Berlin" in listed
    (line,) = run("schedules", "ls", "--json").stdout.splitlines()
    assert json.loads(line)["check_name"] is None
    back = run(
        "schedules", "set", "nightly", "--priority", "none", "--max-retries", "none",
        "--tag", "none", "--json",
    )  # fmt: skip
    cleared = json.loads(back.stdout)
    assert (cleared["priority"], cleared["max_retries"], cleared["tags"]) == (None, None, [])
    lowered = run("schedules", "set", "nightly", "--priority", -7, "--json")
    assert json.loads(lowered.stdout)["priority"] == -7
    assert "At 03:00, every day, Europe/Berlin" in run("schedules", "ls").stdout
    shown = run("schedules", "show", "nightly").stdout
    assert "At 03:00, every day, Europe/Berlin" in shown
    # With the zone of the terminal.
    assert len(re.findall(r"\nfires +[\d-]+ [\d:]+ [+\w]+", shown)) == 3
    assert "At 03:00" in shown
    assert json.loads(run("schedules", "show", "nightly", "--json").stdout)["cron"] == "0 3 * * *"
    assert run("schedules", "delete", "nightly").stderr == "schedule nightly: deleted\n"
    assert run("schedules", "show", "nightly").exit_code == 3


def test_disable_and_enable(run: Run) -> None:
    run(*SET)
    assert run("schedules", "disable", "nightly").stderr == "schedule nightly: disabled\n"
    assert "disabled" in run("schedules", "ls").stdout
    assert json.loads(run("schedules", "enable", "nightly", "--json").stdout)["next_at"]


def test_run_now_prints_the_job_and_its_slot_is_kept(run: Run, factory: JobFactory) -> None:
    run(*SET, "--check", "is_full")
    ran = run("--by", "ann", "schedules", "run", "nightly")
    (claim,) = factory.claim("greet")
    assert ran.stdout == f"{claim.job_id}\n"
    output = run("schedules", "run", "nightly", "--check").stderr
    assert "requested; a worker runs the check" in output
    asked = json.loads(run("schedules", "run", "nightly", "--check", "--json").stdout)
    assert (asked["answer"], asked["job_id"]) == ("asked", None)
    (slot,) = map(json.loads, run("schedules", "slots", "nightly", "--json").stdout.splitlines())
    assert (slot["job_id"], slot["note"]) == (str(claim.job_id), "by ann")
    assert "submitted (run now)" in run("schedules", "slots", "nightly").stdout
    shown = run("schedules", "show", "nightly").stdout
    assert "submitted (run now)" in shown
    assert "recent" not in shown
    assert not re.search(r"\dT\d\d:", shown), "one form for all times"
    older = run("schedules", "slots", "nightly", "--limit", 1)
    assert f"--before {slot['slot']}" in older.stderr
    assert run("schedules", "slots", "nightly", "--before", slot["slot"], "--json").stdout == ""


def test_changes_are_kept_and_rolled_back(run: Run) -> None:
    run(*SET)
    run("--by", "ann", "schedules", "set", "nightly", "--cron", "@daily")
    assert "ann" in run("schedules", "history", "nightly").stdout
    assert run("schedules", "rollback", "nightly").exit_code == 0
    assert json.loads(run("schedules", "show", "nightly", "--json").stdout)["cron"] == "0 3 * * *"


@pytest.mark.parametrize(
    "args,code,output",
    [
        (["set", "x", "--type", "t"], 2, "cron: is required"),
        (["set", "x", "--cron", "@daily"], 2, "job_type: is required"),
        (["set", "x", "--type", "t", "--cron", "61 * * * *"], 2, "minute field"),
        (["set", "x", "--type", "t", "--cron", "@daily", "--timezone", "Mars"], 2, "timezone:"),
        (["set", "x", "--type", "t", "--cron", "@daily", "--payload", "{"], 2, "is not JSON"),
        (["set", "x", "--type", "t", "--cron", "@daily", "--missed", "no"], 2, "missed:"),
        (["set", "Bad Name", "--type", "t", "--cron", "@daily"], 2, "name:"),
        (["set", "x", "--priority", "high"], 2, "--priority"),
        (["set", "x", "--max-retries", "9" * 5000], 2, "--max-retries"),
        (["enable", "missing"], 3, "no schedule missing"),
        (["run", "missing"], 3, "no schedule missing"),
        (["slots", "missing"], 3, "no schedule missing"),
        (["delete", "missing"], 3, "no schedule missing"),
    ],
)
def test_invalid_value_is_refused_with_its_code(
    run: Run, args: list[str], code: int, output: str
) -> None:
    refused = run("schedules", *args)
    assert (refused.exit_code, refused.stdout) == (code, "")
    assert output in refused.stderr


def test_run_names_a_type_that_no_live_worker_has(run: Run, factory: JobFactory) -> None:
    run("schedules", "set", "nightly", "--type", "report", "--cron", "0 3 * * *")
    alone = run("schedules", "run", "nightly")
    assert alone.exit_code == 0
    assert alone.stderr == "no live worker has report: the job waits until one does\n"
    factory.publish("report")
    factory.register(("report",))
    assert run("schedules", "run", "nightly").stderr == ""
