"""Laws of `laneway audit`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.support.job_factory import JobFactory


def found(answer: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in answer.stdout.splitlines()]


def test_changes_by_command_line_are_audited_as_such(run: Run, factory: JobFactory) -> None:
    job_id = factory.submit()
    assert run("--by", "ann", "jobs", "cancel", job_id).exit_code == 0
    for change in (
        ("lanes", "set", "system", "--max-slots", 3),
        ("limits", "set", "openai", "--max-concurrent", 2),
        ("pause",),
        ("resume",),
    ):
        assert run("--by", "bob", *change).exit_code == 0
    audit_entries = found(run("audit", "--json"))
    assert [(act["actor"], act["action"]) for act in audit_entries] == [
        ("bob", "gate.opened"), ("bob", "gate.shut"), ("bob", "limit.tuned"),
        ("bob", "lane.tuned"), ("ann", "job.cancelled"),
    ]  # fmt: skip
    assert {act["door"] for act in audit_entries} == {"cli"}
    shown = run("audit").stdout
    assert "max_slots 1 → 3" in shown
    assert str(job_id) in shown
    narrowed = {
        ("--actor", "ann"): 1, ("--action", "lane.tuned"): 1, ("--kind", "gate"): 2,
        ("--name", "openai"): 1, ("--door", "http"): 0, ("--outcome", "refused"): 0,
        ("--since", "1h"): 5, ("--since", "2000-01-01T00:00:00Z"): 5, ("--limit", 2): 2,
    }  # fmt: skip
    for options, count in narrowed.items():
        assert len(found(run("audit", "--json", *options))) == count, options
    page = run("audit", "--json", "--limit", 2)
    cursor = page.stderr.split()[-1]
    assert found(run("audit", "--json", "--cursor", cursor)) == audit_entries[2:]


def test_submit_is_one_audit_entry_and_duplicate_none(run: Run) -> None:
    for _ in range(2):
        made = run("--by", "ann", "jobs", "submit", "greet", "--unique-key", "k", "--json")
        assert made.exit_code == 0
    (act,) = found(run("audit", "--json"))
    assert (act["actor"], act["door"], act["action"]) == ("ann", "cli", "job.submitted")
    assert (act["kind"], act["name"]) == ("job", json.loads(made.stdout)["id"])
    assert (act["workspace"], act["after"]) == (
        "default", {"job_type": "greet", "status": "approved"},
    )  # fmt: skip


def test_bulk_request_is_one_audit_entry_with_counts(run: Run, factory: JobFactory) -> None:
    for _ in range(2):
        factory.submit("many")
    assert run("jobs", "cancel", "--type", "many", "--yes").exit_code == 0
    (act,) = found(run("audit", "--json"))
    assert (act["action"], act["after"]["matched"]) == ("job.bulk_cancelled", 2)
    assert act["after"]["filter"] == {"job_type": "many"}


@pytest.mark.parametrize(
    "option,value",
    [("--door", "window"), ("--outcome", "maybe"), ("--cursor", "x"), ("--limit", 0)],
)
def test_wrong_option_is_a_usage_error_that_names_it(run: Run, option: str, value: object) -> None:
    answer = run("audit", option, value)
    assert answer.exit_code == 2
    assert option.removeprefix("--") in answer.stderr


def test_empty_audit_is_reported(run: Run) -> None:
    answer = run("audit", "--kind", "lane")
    assert (answer.exit_code, answer.stdout) == (0, "")
    assert answer.stderr == "no audit entry matches\n"


def test_unknown_kind_is_refused_with_those_that_there_are(run: Run) -> None:
    answer = run("audit", "--kind", "jobs")
    assert answer.exit_code == 2
    assert "must be one of job, flow, event, lane," in answer.stderr
    assert "did you mean job?" in answer.stderr
    for kind in ("job", "route", "call", "database"):
        assert run("audit", "--kind", kind).exit_code == 0
