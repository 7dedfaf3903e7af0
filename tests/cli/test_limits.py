"""Laws of `laneway limits`, and of `history` and `rollback` wherever they are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.support.job_factory import JobFactory


def lines(result: Any) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_limits_are_created_set_listed_and_deleted(run: Run, factory: JobFactory) -> None:
    made = run("--by", "ann", "limits", "set", "gpu", "--scope", "host", "--json")
    assert (made.exit_code, json.loads(made.stdout)["max_concurrent"]) == (0, 1)
    assert run("limits", "set", "cpu", "--max-concurrent", 2).stderr == "limit cpu: created\n"
    changed = run("limits", "set", "gpu", "--max-concurrent", "unbounded", "--rate", "90/1m")
    assert changed.stderr == (
        "limit gpu: max_concurrent 1 → unbounded, rate_count null → 90, rate_period_s null → 60.0\n"
    )
    assert run("limits", "set", "gpu", "--rate", "90/1m").stderr == "limit gpu: unchanged\n"
    listed = {each["name"]: each for each in lines(run("limits", "ls", "--json"))}
    assert list(listed) == ["anthropic", "cpu", "gpu", "ollama", "openai"]
    gpu = listed["gpu"]
    assert (gpu["max_concurrent"], gpu["scope"]) == (None, "host")
    assert (gpu["rate_count"], gpu["rate_period_s"], gpu["running"]) == (90, 60.0, 0)
    text = run("limits", "ls").stdout
    assert "90 per 1m00s" in text
    assert "∞" in text
    assert run("limits", "set", "gpu", "--rate", "none").exit_code == 0
    assert "90 per" not in run("limits", "ls").stdout
    assert run("limits", "delete", "gpu").stderr == "limit gpu: deleted\n"
    assert lines(run("limits", "delete", "cpu", "--json")) == [{"name": "cpu", "deleted": True}]
    assert run("limits", "delete", "cpu").exit_code == 3


def test_ls_names_holders_of_limit(run: Run, factory: JobFactory) -> None:
    factory.publish("draw", limits=("openai",))
    factory.running("draw")
    listed = {each["name"]: each for each in lines(run("limits", "ls", "--json"))}
    assert listed["openai"]["holders"] == ["a job of type draw"]
    assert listed["ollama"]["holders"] == []
    assert "a job of type draw" in run("limits", "ls").stdout


def test_set_without_options_names_them_and_creates_nothing(run: Run, factory: JobFactory) -> None:
    refused = run("limits", "set", "zz")
    assert refused.exit_code == 2
    assert "--max-concurrent, --rate or --scope" in refused.stderr
    assert "zz" not in run("limits", "ls").stdout


def test_limit_that_is_needed_is_refused(run: Run, factory: JobFactory) -> None:
    factory.conn.execute("insert into laneway.job_types (name, limits) values ('chat', '{openai}')")
    factory.register(("chat",))
    refused = run("limits", "delete", "openai")
    assert (refused.exit_code, refused.stdout) == (4, "")
    assert "the handlers of chat need it" in refused.stderr


@pytest.mark.parametrize("rate,period", [("10/s", 1.0), ("10/ 5m", 300.0), ("10/0.5s", 0.5)])
def test_rates_are_read_as_people_write_them(run: Run, rate: str, period: float) -> None:
    (limit,) = lines(run("limits", "set", "gpu", "--rate", rate, "--json"))
    assert (limit["rate_count"], limit["rate_period_s"]) == (10, period)


@pytest.mark.parametrize(
    "args,code",
    [
        (["set", "openai"], 2),
        (["set", "openai", "--max-concurrent", "many"], 2),
        (["set", "openai", "--max-concurrent", "10001"], 2),
        (["set", "openai", "--rate", "60"], 2),
        (["set", "openai", "--rate", "60/week"], 2),
        (["set", "openai", "--rate", "0/1m"], 2),
        (["set", "openai", "--rate", "-5/1m"], 2),
        (["set", "openai", "--rate", f"{'9' * 5000}/1m"], 2),
        (["set", "openai", "--rate", f"5/{'9' * 5000}d"], 2),
        (["set", "openai", "--max-concurrent", "9" * 5000], 2),
        (["set", "openai", "--scope", "planet"], 2),
        (["set", "Bad Name", "--max-concurrent", "1"], 2),
        (["delete", "missing"], 3),
        (["rollback", "missing"], 3),
        (["rollback", "openai"], 3),
        (["rollback", "openai", "--to", "99"], 3),
        (["rollback", "openai", "--to", "-1"], 2),
        (["rollback", "x; drop table laneway.jobs"], 2),
        (["history", "Bad Name"], 2),
        (["history", "--limit", "0"], 2),
    ],
)
def test_invalid_value_is_refused_with_its_code(run: Run, args: list[str], code: int) -> None:
    refused = run("limits", *args)
    assert (refused.exit_code, refused.stdout) == (code, "")
    assert len(refused.stderr) > 10


@pytest.mark.parametrize(
    "group,name,option",
    [("limits", "openai", "--max-concurrent"), ("lanes", "system", "--max-slots")],
)
def test_history_and_rollback_print_changes(run: Run, group: str, name: str, option: str) -> None:
    field = option[2:].replace("-", "_")
    for value in (20, 30):
        assert run("--by", "ann", group, "set", name, option, value).exit_code == 0
    newest, oldest = lines(run(group, "history", name, "--json"))
    assert newest["before"][field] == 20
    assert newest["after"][field] == 30
    assert (newest["by"], newest["verb"]) == ("ann", "changed")
    text = run(group, "history", name).stdout
    assert f"{field} 20 → 30" in text
    assert text.index("20 → 30") < text.index("→ 20")
    undone = run("--by", "bob", group, "rollback", name)
    assert undone.exit_code == 0
    assert f"{field} 30 → 20 (change {newest['id'] + 1})" in undone.stderr
    (shown,) = lines(run(group, "rollback", name, "--to", newest["id"], "--json"))
    assert shown["change"]["after"][field] == 30
    (shown,) = lines(run(group, "rollback", name, "--to", newest["id"], "--json"))
    assert shown == {"change": None}
    assert "unchanged" in run(group, "rollback", name, "--to", newest["id"]).stderr
    assert [each["by"] for each in lines(run(group, "history", name, "--json"))][1:2] == ["bob"]
    page = run(group, "history", name, "--limit", 1)
    assert page.stderr.startswith("older changes: --before ")
    (first,) = lines(run(group, "history", name, "--before", newest["id"], "--json"))
    assert first["id"] == oldest["id"]


def test_creation_and_a_deletion_are_undone(run: Run) -> None:
    run("limits", "delete", "ollama")
    assert "created" in run("limits", "rollback", "ollama").stderr
    assert "deleted" in run("limits", "rollback", "ollama").stderr
    run("lanes", "create", "video", "--job-types", "cut")
    assert "deleted" in run("lanes", "rollback", "video").stderr
    assert run("lanes", "rollback", "default").exit_code == 3


def test_history_of_all_lanes_has_the_pause_gate_in_it(run: Run) -> None:
    run("--by", "ann", "pause")
    run("--by", "bob", "resume")
    run("--by", "cleo", "lanes", "drain", "system")
    shown = [(each["kind"], each["by"]) for each in lines(run("lanes", "history", "--json"))]
    assert shown == [("lane", "cleo"), ("gate", "bob"), ("gate", "ann")]
    assert "pause gate" in run("lanes", "history").stdout
    assert "no change of the lane default is kept" in run("lanes", "history", "default").stderr


def test_names_in_the_history_are_shown_and_not_obeyed(run: Run) -> None:
    run("--by", "e\x1b[2Jve", "limits", "set", "openai", "--max-concurrent", 3)
    text = run("limits", "history").stdout
    assert "\x1b" not in text
    assert "e\\x1b[2Jve" in text


@pytest.mark.parametrize(
    "args",
    [
        ["limits", "set", "openai", "--max-concurrent", "9" * 5000],
        ["limits", "set", "openai", "--rate", f"{'9' * 5000}/1m"],
        ["limits", "set", "openai", "--rate", f"5/{'9' * 400}d"],
        ["limits", "history", "--before", "9" * 5000],
        ["limits", "rollback", "openai", "--to", "9" * 5000],
        ["lanes", "set", "system", "--max-slots", "9" * 5000],
        ["lanes", "create", "new", "--poll-interval-ms", "9" * 5000],
        ["lanes", "set", "system", "--lease-seconds", "9" * 100],
        ["jobs", "ls", "--since", f"{'9' * 400}d"],
        ["jobs", "ls", "--limit", "9" * 5000],
        ["jobs", "submit", "t", "--delay", "9" * 400],
        ["freeze", "--deadline", "9" * 400],
        ["schedules", "slots", "x", "--limit", "9" * 100],
    ],
)
def test_huge_number_is_a_usage_error_that_names_its_option(run: Run, args: list[str]) -> None:
    refused = run(*args)
    assert (refused.exit_code, refused.stdout) == (2, "")
    option = next(arg for arg in reversed(args) if arg.startswith("--"))
    assert option in refused.stderr or option[2:].replace("-", "_") in refused.stderr


@pytest.mark.parametrize("by,rule", [("a\udcffb", "lone surrogate"), ("ann\xa0", "blank")])
def test_invalid_name_changes_nothing(run: Run, factory: JobFactory, by: str, rule: str) -> None:
    job_id = factory.submit()
    for args in (
        ["lanes", "drain", "system"],
        ["pause"],
        ["limits", "delete", "openai"],
        ["schedules", "run", "x"],
        ["jobs", "submit", "t"],
        ["jobs", "reprioritize", job_id, 5],
        ["jobs", "cancel", "--all", "--yes"],
    ):
        refused = run("--by", by, *args)
        assert (refused.exit_code, refused.stdout) == (2, ""), args
        assert "by: " in refused.stderr, args
        assert rule in refused.stderr, args
