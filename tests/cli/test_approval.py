"""Laws of `laneway jobs approve`, `reject` and what `ls` and `show` say of it."""

from __future__ import annotations

import json
import re
from uuid import UUID, uuid4

import pytest

from laneway.domain.approval import Analysis, Approval
from tests.cli.conftest import Run
from tests.support.job_factory import JobFactory

DEAR = Analysis(plan=["drop", "build"], cost=1250, currency="EUR", warnings=["takes a day"])


@pytest.fixture
def waiting(factory: JobFactory) -> UUID:
    factory.publish("costly", approval=Approval(two_person=True), has_analysis=True)
    return factory.analyzed(DEAR, created_by="ann")


def test_awaiting_list_shows_cost_and_expiry(run: Run, waiting: UUID) -> None:
    shown = run("jobs", "ls", "--status", "awaiting_approval")
    assert shown.exit_code == 0
    head, row = shown.stdout.splitlines()
    assert "COST" in head
    assert "EXPIRES IN" in head
    assert row.split()[:6] == [str(waiting), "costly", "1,250", "EUR", "1", "0"]
    assert re.search(r"23h5\dm", row)
    found = json.loads(run("jobs", "ls", "--status", "awaiting_approval", "--json").stdout)
    assert found["analysis"]["cost"] == {"amount": 1250, "currency": "EUR"}


def test_show_prints_plan_cost_warnings_seal_and_decisions(run: Run, waiting: UUID) -> None:
    shown = run("jobs", "show", waiting).stdout
    for text in ('["drop", "build"]', "1,250 EUR", "takes a day", "not ann", "seal"):
        assert text in shown
    seal = json.loads(run("jobs", "show", waiting, "--json").stdout)["seal"]
    assert seal in shown
    assert run("--by", "bob", "jobs", "approve", waiting, "--comment", "fine").exit_code == 0
    shown = run("jobs", "show", waiting).stdout
    assert "by bob: fine" in shown
    assert "approved_by" in shown
    found = json.loads(run("jobs", "show", waiting, "--json").stdout)
    assert [(d["decision"], d["decided_by"], d["comment"]) for d in found["decisions"]] == [
        ("approved", "bob", "fine")
    ]


def test_show_of_plain_job_omits_approvals(run: Run, factory: JobFactory) -> None:
    shown = run("jobs", "show", factory.submit()).stdout
    assert "seal" not in shown
    assert "cost" not in shown


def test_show_obeys_no_text_of_an_analysis(run: Run, factory: JobFactory) -> None:
    factory.publish("costly", approval=Approval(), has_analysis=True)
    job_id = factory.analyzed(Analysis(plan="\x1b[31mred", warnings=["a\x1b]0;title\x07b"]))
    for shown in (run("jobs", "show", job_id), run("jobs", "ls", "--status", "awaiting_approval")):
        assert shown.exit_code == 0
        assert "\x1b" not in shown.stdout


def test_approve_and_reject_print_result(run: Run, factory: JobFactory, waiting: UUID) -> None:
    done = run("--by", "bob", "jobs", "approve", waiting)
    assert (done.exit_code, done.stderr) == (0, f"job {waiting}: approved\n")
    other = factory.analyzed(DEAR, created_by="ann")
    assert run("jobs", "reject", other).exit_code == 2
    done = run("--by", "bob", "jobs", "reject", other, "--reason", "too dear", "--json")
    assert (done.exit_code, json.loads(done.stdout)["status"]) == (0, "cancelled")
    assert "rejected" in run("jobs", "show", other).stdout


def test_refusal_exits_with_4_and_reason(run: Run, waiting: UUID) -> None:
    refused = run("--by", "ann", "jobs", "approve", waiting)
    assert refused.exit_code == 4
    assert "needs another person" in refused.stderr
    refused = run("--by", "bob", "jobs", "approve", waiting, "--seal", "0" * 64)
    assert refused.exit_code == 4
    assert "has changed since it was shown" in refused.stderr
    seal = json.loads(run("jobs", "show", waiting, "--json").stdout)["seal"]
    assert run("--by", "bob", "jobs", "approve", waiting, "--seal", seal).exit_code == 0
    refused = run("--by", "bob", "jobs", "approve", waiting)
    assert refused.exit_code == 4
    assert "is approved" in refused.stderr
    assert run("--by", "bob", "jobs", "approve", uuid4()).exit_code == 3
    assert run("jobs", "approve", uuid4(), uuid4(), "--seal", seal).exit_code == 2


def test_submit_takes_a_concurrency_key(run: Run) -> None:
    made = run("jobs", "submit", "greet", "--concurrency-key", "doc-1", "--json")
    assert json.loads(made.stdout)["concurrency_key"] == "doc-1"
    assert run("jobs", "submit", "greet", "--concurrency-key", "").exit_code == 2


def test_submit_prints_state_of_job(run: Run, factory: JobFactory) -> None:
    factory.publish("costly", approval=Approval())
    made = run("jobs", "submit", "costly", "--json")
    assert json.loads(made.stdout)["status"] == "awaiting_approval"
